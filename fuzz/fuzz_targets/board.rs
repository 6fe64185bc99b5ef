//! Fuzzes the reader and the editor of the sprint board.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tribunal_fuzz::board(bytes));
