//! Work that blocks, on a thread of its own.

use std::sync::{Arc, Mutex, PoisonError};

/// Work that has panicked.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WorkPanicked(String);

/// Runs work on another thread, since it would block the workflow. Work that has begun goes on if the waiting future is dropped.
pub(crate) fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, WorkPanicked>> + Send {
    let result = Arc::new(Mutex::new(None));
    let result_of_work = Arc::clone(&result);
    // The runtime makes several kilobytes of code for each type of work, so it gets only this one.
    let boxed_work: Box<dyn FnOnce() + Send> = Box::new(move || {
        let finished = work();
        *result_of_work.lock().unwrap_or_else(PoisonError::into_inner) = Some(finished);
    });
    wait_for_result(boxed_work, result)
}

async fn wait_for_result<T>(
    boxed_work: Box<dyn FnOnce() + Send>,
    result: Arc<Mutex<Option<T>>>,
) -> Result<T, WorkPanicked> {
    run_boxed(boxed_work).await?;
    let finished = result.lock().unwrap_or_else(PoisonError::into_inner).take();
    finished.ok_or_else(|| WorkPanicked("it left no result".to_string()))
}

async fn run_boxed(boxed_work: Box<dyn FnOnce() + Send>) -> Result<(), WorkPanicked> {
    tokio::task::spawn_blocking(boxed_work).await.map_err(|panicked| WorkPanicked(panicked.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_comes_back_and_a_panic_is_an_error() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let sum = runtime.block_on(run_blocking(|| 2 + 2));
        assert_eq!(sum.ok(), Some(4));
        let failed = runtime.block_on(run_blocking(|| -> u8 { panic!("no such file") }));
        assert!(failed.unwrap_err().to_string().contains("no such file"));
    }
}
