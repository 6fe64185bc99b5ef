//! Projects of ralph-orchestrator and bmalph: a prompt that is given to an agent again and again, a plan with boxes to tick,
//! and settings. Their own files say what they say there, so that such a project runs as it is.
//!
//! [`project`] finds the files, [`settings`] reads `.ralphrc`, [`orchestrator_config`] reads `ralph.yml`, [`fix_plan`] reads the
//! plan, [`fix_plan_writer`] writes a project's stories into it, [`spec_copies`] renders the copies of documents beside it, and
//! [`completion_mark`] looks for the box that declares a prompt done. Nothing is executed: `.ralphrc` is a shell
//! script to its own tools, but a project may come from a stranger, so [`shell_assignments`] reads plain assignments and names
//! every other line.

pub mod completion_mark;
pub mod fix_plan;
pub mod fix_plan_marks;
pub mod fix_plan_stories;
pub mod fix_plan_writer;
pub mod orchestrator_config;
pub mod project;
pub mod settings;
pub mod shell_assignments;
pub mod spec_copies;
