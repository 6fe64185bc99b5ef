//! How far a run is asked to stop.

/// What the user at the terminal wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopLevel {
    #[default]
    Continue,
    /// Nothing new starts; running effects may finish.
    ParkRun,
    /// Running effects are ended as well.
    EndNow,
}
