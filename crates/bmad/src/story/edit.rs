//! Changes a story's file.
