//! Sessions as clients write them down.
