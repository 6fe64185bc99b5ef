//! What commands print besides the view of a run: errors, help texts, JSON documents.

pub(crate) mod help_texts;
pub(crate) mod json_documents;
mod run_documents;
pub(crate) mod usage_errors;
pub(crate) mod user_errors;
