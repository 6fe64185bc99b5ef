//! What clients say.
