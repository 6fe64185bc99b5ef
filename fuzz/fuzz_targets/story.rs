//! Fuzzes the readers and editors of stories and other documents.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tribunal_fuzz::story(bytes));
