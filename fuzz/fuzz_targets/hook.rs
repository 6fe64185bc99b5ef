//! Fuzzes the readers of hook input and session transcripts.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tribunal_fuzz::hook(bytes));
