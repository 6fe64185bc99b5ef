//! Tasks for agents: what an agent is asked, which agent is asked, what can go wrong, and how asking goes on after that.

pub mod answer_words;
pub mod asking;
pub mod background;
pub mod brief;
pub mod claims;
pub mod client;
pub mod consult_outcome;
pub mod instructions;
pub mod output_similarity;
pub mod party_minutes;
pub mod prompt_context;
pub mod purpose;
pub mod selection;
pub mod status_report;
