"""The rules of VocalBench-zh; definitions in `scoring/benchmarks/VOCALBENCH_ZH.md`."""
