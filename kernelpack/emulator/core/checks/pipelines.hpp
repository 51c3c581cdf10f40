// Operations of one pipe that several threads issue (checks/pipelines.py; PTX ISA 9.7.16.6.2).
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace kernelpack::checks {

// Operations of one kind that one thread issued, in order: when each was issued, and ran.
struct Line {
  int agent, issuer;
  std::vector<int32_t> issued, ran;
};

class Pipelines {
public:
  // An operation of `agent` runs at a step of it; `behind(agent, step)` gets each other agent
  // and what of theirs is behind it, by what the issuer of the operation `knows` of others.
  template <typename Knows, typename Behind>
  void run(const Stage& stage, int issuer, int32_t issued, int agent, int32_t step, Knows knows,
           Behind behind) {
    for (const int64_t kind : stage.behind) {
      const auto found = lines_.find({stage.pipe, kind});
      if (found == lines_.end()) continue;
      for (const Line& line : found->second)
        if (line.agent != agent) told(line, knows(line.issuer), behind);
    }
    Line& line = line_of(lines_[{stage.pipe, stage.kind}], agent, issuer);
    line.issued.push_back(issued);
    line.ran.push_back(step);
  }

  void forget(const std::vector<int>& agents) {
    for (auto at = lines_.begin(); at != lines_.end();) {
      auto& lines = at->second;
      const auto gone = [&](const Line& line) {
        return std::find(agents.begin(), agents.end(), line.agent) != agents.end();
      };
      lines.erase(std::remove_if(lines.begin(), lines.end(), gone), lines.end());
      at = lines.empty() ? lines_.erase(at) : std::next(at);
    }
  }

private:
  template <typename Behind>
  static void told(const Line& line, int32_t known, Behind behind) {
    const auto& issued = line.issued;
    const auto before = std::upper_bound(issued.begin(), issued.end(), known) - issued.begin();
    if (before) behind(line.agent, line.ran[static_cast<size_t>(before) - 1]);
  }
  static Line& line_of(std::vector<Line>& lines, int agent, int issuer) {
    for (Line& line : lines)
      if (line.agent == agent) return line;
    lines.push_back({agent, issuer, {}, {}});
    return lines.back();
  }

  std::map<std::pair<int64_t, int64_t>, std::vector<Line>> lines_;  // by pipe and kind
};

}  // namespace kernelpack::checks
