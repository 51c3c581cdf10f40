// Registers of a thread of each warpgroup (setmaxnreg).
constexpr uint32_t EVEN_REGISTERS = 216, ODD_REGISTERS = {{ 208 if WIDENS else 216 }};
constexpr uint32_t GATHER_REGISTERS = {{ 80 if WIDENS else 72 }};
static_assert(EVEN_REGISTERS + ODD_REGISTERS + GATHER_REGISTERS <= 3 * (65536 / THREADS / 8 * 8),
              "a CTA has no more registers than it starts with");
