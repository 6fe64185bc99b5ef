//! Tests of the journal on disk.
//!
//! All tests are one binary, because every further one would be linked against everything again.

mod damage;
mod journal;
mod records;
mod sweep;
