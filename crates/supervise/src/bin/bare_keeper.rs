//! A program that is nothing but a keeper: tests and benchmarks of this crate put it between themselves and a process.

use std::process::ExitCode;

fn main() -> ExitCode {
    tribunal_supervise::enter_keeper().unwrap_or(ExitCode::from(64))
}
