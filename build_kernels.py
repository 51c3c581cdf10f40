"""Build the kernels of this checkout: the command line's `build`, for those with nothing installed.

python build_kernels.py [MANIFEST ...] -o kernels.kpk
"""

import sys

from kernelpack.__main__ import main

if __name__ == "__main__":
    sys.argv.insert(1, "build")
    main()
