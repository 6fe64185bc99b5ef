//! Rules and workflows over simulated hosts, one module per subject.
//!
//! All of them are in one binary, because each further binary would have to be linked against everything again.

mod agent_faults;
mod approvals;
mod asking;
mod challenge;
mod change_subjects;
mod checks;
mod confidence;
mod confidence_inputs;
mod dismissals;
mod grounding;
mod known_failures;
mod loops;
mod merge;
mod progress_guards;
mod recorded_journals;
mod repairs;
mod repeated_output;
mod replay;
mod review;
mod rule_properties;
mod run_kinds;
mod session_repairs;
mod sprints;
mod stories;
mod tracker;
mod unknown_words;
