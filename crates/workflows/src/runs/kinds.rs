//! The kinds of runs. Each kind is one row of the table at the end of this file.
//!
//! A kind has an *order* (what was asked, pinned in `run_started`), events, a view and a summary of its own, and a workflow
//! ([`crate::workflows::Workflow`]). What holds for every kind is written once, over the enums that the table makes: no other
//! code lists the kinds.
//!
//! To add a kind: its directory in `workflows`, with [`RunKind`] implemented for its order; a row here; its reporter in `report`.

use alloc::{format, string::String, vec::Vec};

use tribunal_json::{Deserialize, FromJson, JsonError, Serialize, schemars};

use crate::{
    runs::run_kind::{KindEvent, RunDriver, RunKind},
    tasks::client::JobKind,
};
use tribunal_engine::run_types::{AnyEvent, AnyOrder};

/// The events of one kind of run.
pub trait EventOfKind: Sized {
    /// Returns the event if it is one of this kind.
    fn from_event(event: &WorkflowEvent) -> Option<&Self>;
}

/// What the questions of one kind of run are about.
pub trait TopicOfKind: Sized {
    /// Returns the topic if it is one of this kind.
    fn from_topic(topic: &WorkflowTopic) -> Option<&Self>;
}

/// Makes the enums over all kinds, and `dispatch_order!`, which runs the same code for the order of any kind.
macro_rules! run_kinds {
    ($d:tt $($(#[$attribute:meta])* $kind:ident($order:ty);)*) => {
        /// What a run was asked to do.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(tag = "workflow", content = "order", rename_all = "snake_case")]
        pub enum RunOrder {
            $($(#[$attribute])* $kind($order),)*
        }

        /// An event of one kind of run.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
        #[serde(untagged)]
        pub enum WorkflowEvent {
            $($(#[$attribute])* $kind(<$order as RunKind>::Event),)*
        }

        /// The part of a run's summary that depends on its kind.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(tag = "workflow", rename_all = "snake_case")]
        pub enum WorkflowSummary {
            $($(#[$attribute])* $kind(<$order as RunKind>::Summary),)*
        }

        /// What a question is about, if only one kind of run asks it.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(untagged)]
        pub enum WorkflowTopic {
            $($(#[$attribute])* $kind(<$order as RunKind>::Topic),)*
        }

        impl RunOrder {
            pub fn kind_name(&self) -> &'static str {
                match self { $($(#[$attribute])* RunOrder::$kind(_) => <$order as RunKind>::NAME,)* }
            }

            pub fn workflow_version(&self) -> u32 {
                match self { $($(#[$attribute])* RunOrder::$kind(_) => <$order as RunKind>::VERSION,)* }
            }

            pub fn run_driver(&self) -> RunDriver {
                match self { $($(#[$attribute])* RunOrder::$kind(_) => <$order as RunKind>::DRIVER,)* }
            }

            pub fn title(&self) -> String {
                match self { $($(#[$attribute])* RunOrder::$kind(order) => order.title(),)* }
            }

            pub fn file_slug(&self) -> String {
                match self { $($(#[$attribute])* RunOrder::$kind(order) => order.file_slug(),)* }
            }

            pub fn exclusive_name(&self) -> Option<String> {
                match self { $($(#[$attribute])* RunOrder::$kind(order) => order.exclusive_name(),)* }
            }

            pub fn written_paths(&self) -> Vec<&str> {
                match self { $($(#[$attribute])* RunOrder::$kind(order) => order.written_paths(),)* }
            }

            pub fn needed_jobs(&self) -> Vec<JobKind> {
                match self { $($(#[$attribute])* RunOrder::$kind(order) => order.needed_jobs(),)* }
            }

            pub fn repeats_one_agent(&self) -> bool {
                match self { $($(#[$attribute])* RunOrder::$kind(order) => order.repeats_one_agent(),)* }
            }

            pub fn works_in_place(&self) -> bool {
                match self { $($(#[$attribute])* RunOrder::$kind(order) => order.works_in_place(),)* }
            }

            pub fn trusts_answer_files(&self) -> bool {
                match self { $($(#[$attribute])* RunOrder::$kind(order) => order.trusts_answer_files(),)* }
            }
        }

        $(
            $(#[$attribute])*
            impl From<$order> for RunOrder {
                fn from(order: $order) -> RunOrder {
                    RunOrder::$kind(order)
                }
            }
        )*

        $(
            $(#[$attribute])*
            impl From<<$order as RunKind>::Event> for WorkflowEvent {
                fn from(event: <$order as RunKind>::Event) -> WorkflowEvent {
                    WorkflowEvent::$kind(event)
                }
            }
        )*

        $(
            $(#[$attribute])*
            impl EventOfKind for <$order as RunKind>::Event {
                fn from_event(event: &WorkflowEvent) -> Option<&Self> {
                    match event {
                        WorkflowEvent::$kind(event) => Some(event),
                        _ => None,
                    }
                }
            }

            $(#[$attribute])*
            impl TopicOfKind for <$order as RunKind>::Topic {
                fn from_topic(topic: &WorkflowTopic) -> Option<&Self> {
                    match topic {
                        WorkflowTopic::$kind(topic) => Some(topic),
                        _ => None,
                    }
                }
            }
        )*

        impl AnyOrder for RunOrder {
            fn kind_names() -> Vec<&'static str> {
                [$($(#[$attribute])* <$order as RunKind>::NAME,)*].to_vec()
            }
        }

        impl WorkflowEvent {
            /// What the user is warned about with the event.
            pub fn list_remarks(&self) -> &[String] {
                match self { $($(#[$attribute])* WorkflowEvent::$kind(event) => event.list_remarks(),)* }
            }
        }

        impl AnyEvent for WorkflowEvent {
            fn kind_name(&self) -> &'static str {
                match self { $($(#[$attribute])* WorkflowEvent::$kind(event) => event.kind_name(),)* }
            }

            fn subject_name(&self) -> String {
                match self { $($(#[$attribute])* WorkflowEvent::$kind(event) => event.subject_name(),)* }
            }

            fn is_from_outside(&self) -> bool {
                match self {
                    $($(#[$attribute])* WorkflowEvent::$kind(_) => <$order as RunKind>::DRIVER == RunDriver::Session,)*
                }
            }

            fn read_event(kind_name: &str, json: serde_json::Value) -> Result<WorkflowEvent, JsonError> {
                $(
                    $(#[$attribute])*
                    if <$order as RunKind>::Event::KIND_NAMES.contains(&kind_name) {
                        return FromJson::from_value(json).map(WorkflowEvent::$kind);
                    }
                )*
                Err(JsonError::new(format!("no kind of run has the event `{kind_name}`")))
            }

            fn all_kind_names() -> Vec<&'static str> {
                let mut kind_names = Vec::new();
                $(
                    $(#[$attribute])*
                    kind_names.extend(<$order as RunKind>::Event::KIND_NAMES);
                )*
                kind_names
            }

            fn has_kind_name(kind_name: &str) -> bool {
                $(
                    $(#[$attribute])*
                    if <$order as RunKind>::Event::KIND_NAMES.contains(&kind_name) {
                        return true;
                    }
                )*
                false
            }
        }

        impl FromJson for WorkflowEvent {
            fn from_value(value: serde_json::Value) -> Result<WorkflowEvent, JsonError> {
                let kind_name = value.get("kind").and_then(serde_json::Value::as_str).unwrap_or_default();
                let kind_name = String::from(kind_name);
                WorkflowEvent::read_event(&kind_name, value)
            }
        }

        /// Runs the same code for an order of any kind.
        macro_rules! dispatch_order {
            ($d order:expr, $d typed_order:ident => $d code:expr) => {
                match $d order {
                    $($(#[$attribute])* $crate::runs::kinds::RunOrder::$kind($d typed_order) => $d code,)*
                }
            };
        }

        /// Calls a macro with one row for each kind: `Review(ReviewOrder);`.
        macro_rules! for_each_kind {
            ($d callback:ident) => {
                $d callback! { $($(#[$attribute])* $kind($order);)* }
            };
        }
    };
}

impl RunOrder {
    /// The order of a review; `None` if the run is of another kind.
    pub fn as_review(&self) -> Option<&crate::review::order::ReviewOrder> {
        match self {
            RunOrder::Review(order) => Some(order),
            _ => None,
        }
    }
}

run_kinds! {$
    Review(crate::review::order::ReviewOrder);
    Session(crate::session::event::SessionAssignment);
    Loop(crate::loop_run::order::LoopOrder);
    Story(crate::story::order::StoryOrder);
    Sprint(crate::sprint::order::SprintOrder);
    #[cfg(feature = "toy-workflow")]
    Toy(crate::toy::order::ToyOrder);
}

pub(crate) use {dispatch_order, for_each_kind};

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;

    /// Makes a list with the names of every kind: its own, and those of its events.
    macro_rules! list_names {
        ($($(#[$attribute:meta])* $kind:ident($order:ty);)*) => {
            [$($(#[$attribute])* (<$order as RunKind>::NAME, <$order as RunKind>::Event::KIND_NAMES),)*]
        };
    }

    #[test]
    fn no_two_kinds_of_runs_share_a_name_or_the_name_of_an_event() {
        let mut known_kinds = BTreeSet::new();
        let mut known_events = BTreeSet::new();
        for (kind_name, event_names) in for_each_kind!(list_names) {
            assert!(known_kinds.insert(kind_name), "two kinds of runs are called `{kind_name}`");
            for event_name in event_names {
                assert!(known_events.insert(*event_name), "`{event_name}` of {kind_name} is not unique");
            }
        }
        assert_eq!(known_kinds, RunOrder::kind_names().into_iter().collect());
    }
}
