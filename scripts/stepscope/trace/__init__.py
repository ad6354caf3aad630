"""Reading a profiler's trace and counting what is in it: kernels by phase, by category, by range."""
