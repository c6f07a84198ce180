#!/usr/bin/env python3
# label: full
"""Two of the mutants, other ones each day."""
import sys

import test_mutants

sys.argv = [sys.argv[0], "--sample", "2"]
test_mutants.main()
