//! Fuzzes the reader of a project's layout, state and documents.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tribunal_fuzz::layout(bytes));
