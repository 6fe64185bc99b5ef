//! What every kind of run has. The kinds themselves are listed in [`super::kinds`].

use alloc::{string::String, vec::Vec};

use crate::tasks::client::JobKind;

/// Who continues a run of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunDriver {
    /// A process of Tribunal, which calls the workflow.
    Host,
    /// The user's session with a client: its hooks record what happens.
    Session,
}

/// A kind of run. It is implemented by the order: what one run of this kind was asked to do.
pub trait RunKind {
    /// The name in `run_started`.
    const NAME: &'static str;
    /// A journal of another version is refused, never guessed at.
    const VERSION: u32;
    const DRIVER: RunDriver = RunDriver::Host;
    type Event: KindEvent;
    type Summary;
    /// What the questions of this kind are about.
    type Topic;

    /// Names what the run works on, for instance `docs/prd.md`.
    fn title(&self) -> String;

    /// Names the run in a notice to the user.
    fn notice_title(&self) -> String {
        self.title()
    }

    /// A short name for file names and run ids.
    fn file_slug(&self) -> String;

    /// Names what only one run at a time may work on; `None` if such runs do not exclude each other.
    fn exclusive_name(&self) -> Option<String> {
        None
    }

    /// The user's files that such a run writes.
    fn written_paths(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Whether the run starts one agent after the other, so that each start should be quick.
    fn repeats_one_agent(&self) -> bool {
        false
    }

    /// Whether agents work in the user's checkout itself.
    fn works_in_place(&self) -> bool {
        false
    }

    /// The jobs for which such a run needs an agent that works.
    fn needed_jobs(&self) -> Vec<JobKind>;

    /// Whether answers are read from files in the project. Not if an agent whose work is judged could have written them.
    fn trusts_answer_files(&self) -> bool {
        true
    }
}

/// What a workflow records as it proceeds.
pub trait KindEvent {
    /// The `kind` of every event as JSON has it. No other kind of run may use the same name.
    const KIND_NAMES: &'static [&'static str];

    fn kind_name(&self) -> &'static str;

    /// Names what the event is about. Together with the kind it forms a name that does not depend on other events.
    fn subject_name(&self) -> String;

    /// What the user is warned about with the event.
    fn list_remarks(&self) -> &[String] {
        &[]
    }
}
