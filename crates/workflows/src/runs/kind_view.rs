//! How a kind of run is shown: the part of a run's view that depends on its kind.

use crate::{
    runs::{effect::Reply, run_kind::RunKind},
    session::event::SessionEvent,
};
use tribunal_engine::timestamp::Timestamp;

/// A kind of run that can be shown.
pub trait ViewedKind: RunKind + Sized {
    type View: KindView<Self>;
}

/// A run of one kind as users see it, computed from its journal.
pub trait KindView<K: RunKind>: Default {
    /// The run has started, or continues with a changed order.
    fn apply_order(&mut self, order: &K);

    fn apply_event(&mut self, event: &K::Event, at: Timestamp);

    fn apply_reply(&mut self, _: &Reply) {}

    /// A session of the user that works for this run has done something.
    fn apply_session(&mut self, _: &SessionEvent, _: Timestamp) {}

    /// The run has ended or parked; the summary has the final figures.
    fn apply_summary(&mut self, _: &K::Summary) {}

    fn build_summary(&self) -> K::Summary;
}
