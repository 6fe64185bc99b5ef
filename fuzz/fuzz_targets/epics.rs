//! Fuzzes the reader of epics.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tribunal_fuzz::epics(bytes));
