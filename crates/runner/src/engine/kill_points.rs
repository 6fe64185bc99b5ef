//! Kill points for the crash test: with the feature `fault-points`, `TRIBUNAL_FAULT=before:0:started:round-1/freeze` kills the
//! program at that point. Without the feature this module does nothing.

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
