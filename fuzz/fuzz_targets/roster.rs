//! Fuzzes the readers of the agent list, the help and the paths of BMAD.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tribunal_fuzz::roster(bytes));
