//! How recorded runs are shown: lines, the live view, tables and exports.
//!
//! All tests are in one binary, because every further one would be linked against everything again.

mod activity;
mod challenged;
mod ci_formats;
mod drawn;
mod events;
mod export;
mod hostile;
mod inert;
mod journals;
mod kept_dismissals;
mod kinds;
mod limits;
mod live;
mod log;
mod run_reports;
