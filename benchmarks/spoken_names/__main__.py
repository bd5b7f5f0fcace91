import sys

from benchmarks.spoken_names.measure import main

if __name__ == "__main__":
    sys.exit(main())
