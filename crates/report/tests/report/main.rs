//! What people see of recorded runs: lines, the live view, tables and exports.
//!
//! One binary for all of them: every further one would be linked against everything again.

mod challenged;
mod drawn;
mod export;
mod hostile;
mod inert;
mod limits;
mod live;
mod log;
