//! The profiler on the running kernel.
mod machine;
mod work;
