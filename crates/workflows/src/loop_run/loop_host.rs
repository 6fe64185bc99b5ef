//! The host as the stages of a loop see it.

use crate::{development::performing::DevelopingOrder, loop_run::order::LoopOrder, runs::kind_host::KindHost};

/// The name of the one workspace of a loop.
pub(super) const WORKSPACE_NAME: &str = "work";

pub(super) type LoopHost<'a> = KindHost<'a, LoopOrder>;

impl DevelopingOrder for LoopOrder {
    const WORKSPACE_NAME: &'static str = WORKSPACE_NAME;
}
