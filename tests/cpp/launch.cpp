// Launches through a stand-in for libcuda, and prints what the stand-in was asked.
//
//     launch LIBCUDA BUNDLE … [- KEY …]   verb TAB words …, a line each; then `.` for each line
//
//     answer  call code                               what a call answers from now on
//     start   kernel, device, stream, sizes, addresses, numbers      select, pack, start
//     gpc     multiprocessors                         of a GPC from now on
//     again   stream                                  start what was packed last once more
//     rebind  argument, address                       move an argument of it, then start it
//     set     number, value                           change a number of it, then start it
//     preload device, kernel
//     close | unload
//     fail    calls, code                             the call after so many others answers code
//     state                                           which call failed; contexts of the thread
//     reload                                          open the bundles again
//     tuned   path                                    open them with a file of times
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <kernelpack/loader.hpp>
#include <sstream>

using namespace kernelpack;

namespace {

std::vector<std::string> split(const std::string& line, char by) {
  std::vector<std::string> parts;
  std::istringstream stream(line);
  for (std::string part; std::getline(stream, part, by);) parts.push_back(part);
  return parts;
}

template <class Number>
std::vector<std::pair<std::string_view, Number>> named(const std::vector<std::string>& words) {
  std::vector<std::pair<std::string_view, Number>> values;
  for (const std::string& word : words) {
    const std::size_t at = word.find('=');
    values.emplace_back(std::string_view(word).substr(0, at),
                        static_cast<Number>(std::strtoll(word.c_str() + at + 1, nullptr, 0)));
  }
  return values;
}

Numbers reals(const std::vector<std::string>& words) {
  Numbers values;
  for (const std::string& word : words) {
    const std::size_t at = word.find('=');
    values.emplace_back(std::string_view(word).substr(0, at),
                        std::strtod(word.c_str() + at + 1, nullptr));
  }
  return values;
}

Stream stream_of(const std::string& word) {
  return reinterpret_cast<Stream>(std::strtoull(word.c_str(), nullptr, 0));
}

class Session {
public:
  Session(const char* driver, std::vector<std::string> bundles, Trust trust)
      : path_(driver),
        bundles_(std::move(bundles)),
        trust_(std::move(trust)),
        driver_(dlopen(driver, RTLD_NOW)) {}

  Status reload() {
    launch_.reset();
    auto driver = Driver::connect(path_);
    if (!driver) return driver.error();
    auto library = load(bundles_, std::move(*driver), trust_, tuned_);
    if (!library) return library.error();
    library_ = std::move(*library);
    return {};
  }

  Status obey(const std::vector<std::string>& words) {
    const std::string& verb = words[0];
    if (verb == "start") return start(words);
    if (verb == "again") return launch_ ? (*launch_)(stream_of(words[1])) : Status();
    if (verb == "rebind") return rebind(words);
    if (verb == "set") return set(words);
    if (verb == "preload") return preload(words);
    if (verb == "close") return library_->close(), Status();
    if (verb == "unload") return library_->unload();
    if (verb == "reload") return reload();
    if (verb == "tuned") return tuned_ = words[1], reload();
    if (verb == "fail") return fail_after(std::atoi(words[1].c_str()), std::atoi(words[2].c_str()));
    if (verb == "state") return show_state();
    if (verb == "gpc") return set_gpc(std::atoi(words[1].c_str()));
    const auto answer = reinterpret_cast<void (*)(const char*, int)>(dlsym(driver_, "fake_answer"));
    answer(words[1].c_str(), std::atoi(words[2].c_str()));
    return {};
  }

  /// What the stand-in was asked since the last time.
  std::string asked() const {
    static char text[1 << 16];
    reinterpret_cast<void (*)(char*, std::size_t)>(dlsym(driver_, "fake_take_log"))(text,
                                                                                    sizeof text);
    return text;
  }

private:
  Status set_gpc(int multiprocessors) {
    reinterpret_cast<void (*)(int)>(dlsym(driver_, "fake_gpc"))(multiprocessors);
    return {};
  }

  Status fail_after(int calls, int code) {
    reinterpret_cast<void (*)(int, int)>(dlsym(driver_, "fake_fail"))(calls, code);
    return {};
  }

  Status show_state() {
    const char* call;
    int stack;
    reinterpret_cast<void (*)(const char**, int*)>(dlsym(driver_, "fake_state"))(&call, &stack);
    std::cout << "failed " << call << ", " << stack << " contexts\n";
    return {};
  }

  Status start(const std::vector<std::string>& words) {
    const auto sizes = split(words[4], ' '), addresses = split(words[5], ' '),
               numbers = split(words.size() > 6 ? words[6] : "", ' ');
    const int device = std::atoi(words[2].c_str());
    const Sizes given = named<std::int64_t>(sizes);
    const auto variant = library_->select(words[1], given, device, {1, 2});
    if (!variant) return variant.error();
    auto launch = library_->pack(**variant, given, named<std::uint64_t>(addresses), device,
                                 stream_of(words[3]), reals(numbers));
    if (!launch) return launch.error();
    launch_.emplace(std::move(*launch));
    return (*launch_)(stream_of(words[3]));
  }

  Status rebind(const std::vector<std::string>& words) {
    if (!launch_) return {};  // it was not started
    const Status done = launch_->rebind(words[1], std::strtoull(words[2].c_str(), nullptr, 0));
    return done ? (*launch_)(nullptr) : done;
  }

  Status set(const std::vector<std::string>& words) {
    if (!launch_) return {};  // it was not started
    const Status done = launch_->set(words[1], std::strtod(words[2].c_str(), nullptr));
    return done ? (*launch_)(nullptr) : done;
  }

  Status preload(const std::vector<std::string>& words) {
    const auto count = library_->preload(std::atoi(words[1].c_str()), words[2]);
    if (!count) return count.error();
    std::cout << *count << " kernels\n";
    return {};
  }

  const char* path_;
  std::vector<std::string> bundles_;
  Trust trust_;
  Tuned tuned_;
  void* driver_;
  std::unique_ptr<Library> library_;
  std::optional<Launch> launch_;
};

void fail(const Error& error) {
  std::string text = error.text();
  for (std::size_t at; (at = text.find('\n')) != text.npos;) text.replace(at, 1, "\\n");
  std::cout << "error " << text << "\n";
}

}  // namespace

int main(int count, char** words) {
  char** const end = words + count;
  char** const dash = std::find(words + 2, end, std::string_view("-"));
  Trust trust;
  if (dash != end) trust = Paths(std::vector<std::string>(dash + 1, end));
  Session session(words[1], std::vector<std::string>(words + 2, dash), std::move(trust));
  if (const Status opened = session.reload(); !opened) return fail(opened.error()), 0;
  for (std::string line; std::getline(std::cin, line);) {
    const Status done = session.obey(split(line, '\t'));
    std::cout << session.asked();
    if (!done) fail(done.error());
    std::cout << ".\n";
  }
}
