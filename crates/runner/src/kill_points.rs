//! Kill points for the crash test: with the feature `fault-points`, `TRIBUNAL_FAULT=before:0:started:round-1/freeze` kills the
//! program at that point, and `TRIBUNAL_FAULT=before:docs@0:started:round-1/freeze` where the child run `docs` gets there. Without
//! the feature this module does nothing.

/// The name of a journal entry as a fault names it.
pub(crate) fn entry_name(child_name: Option<&str>, entry_id: &str) -> String {
    match child_name {
        Some(child_name) => format!("{child_name}@{entry_id}"),
        None => entry_id.to_string(),
    }
}

#[cfg(feature = "fault-points")]
pub(crate) fn kill_if_requested(name: &str, when: &str) {
    let wanted = std::env::var("TRIBUNAL_FAULT").unwrap_or_default();
    if wanted.split_once(':') == Some((when, name)) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        // The signal is on its way; nothing more may happen before it arrives.
        loop {
            std::thread::park();
        }
    }
}

#[cfg(not(feature = "fault-points"))]
pub(crate) fn kill_if_requested(_: &str, _: &str) {}
