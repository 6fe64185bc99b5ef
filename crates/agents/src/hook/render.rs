//! What is said back.
