//! Decides who may start an agent: a limited number at a time in this process, shared fairly between its runs.
//!
//! Every run has its own lane. Within a lane the first to come is served first, and the lanes take turns, so that a run with
//! many tasks cannot starve another. A permit returns when it is dropped, also if the task that waited for it is gone, and
//! then goes to the next one in line.
//!
//! Checks need no permit: a landing must not wait for agents.

use std::{
    collections::VecDeque,
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

/// The permits that all runs of a process share. All clones are the same permits.
#[derive(Clone, Debug)]
pub(crate) struct Permits(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// The number of free permits; while it is not zero, no task waits.
    free: usize,
    /// The lanes in the order in which they were opened. A closed lane is empty and stays, since there are only as many as runs.
    lanes: Vec<VecDeque<oneshot::Sender<Permit>>>,
    /// The lane that was served last.
    last: usize,
}

/// The queue in which one run's tasks wait.
#[derive(Debug)]
pub(crate) struct Lane {
    permits: Permits,
    number: usize,
}

/// Allows one agent to work. Returned when it is dropped.
#[derive(Debug)]
pub(crate) struct Permit(Option<Permits>);

impl Permits {
    pub fn new(at_once: NonZeroUsize) -> Permits {
        Permits(Arc::new(Mutex::new(State { free: at_once.get(), lanes: Vec::new(), last: 0 })))
    }

    pub fn lane(&self) -> Lane {
        let mut state = self.state();
        state.lanes.push(VecDeque::new());
        Lane { number: state.lanes.len() - 1, permits: self.clone() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(self) {
        let mut state = self.state();
        while let Some((lane, waiter)) = state.next() {
            match waiter.send(Permit(Some(self.clone()))) {
                Ok(()) => {
                    state.last = lane;
                    return;
                }
                // The task that waited is gone, which does not count as its lane's turn. The permit is emptied, since dropping it
                // as it is would return it twice.
                Err(mut unwanted) => drop(unwanted.0.take()),
            }
        }
        state.free += 1;
    }
}

impl State {
    /// Returns the first waiter of the next lane that has one; the lane that was served last comes last.
    fn next(&mut self) -> Option<(usize, oneshot::Sender<Permit>)> {
        let lanes = self.lanes.len();
        (1..=lanes)
            .map(|step| (self.last + step) % lanes)
            .find_map(|lane| self.lanes[lane].pop_front().map(|waiter| (lane, waiter)))
    }
}

impl Lane {
    /// Waits for a permit. A task that is dropped meanwhile leaves the lane.
    pub async fn permit(&self) -> Permit {
        let waiting = {
            let mut state = self.permits.state();
            // A free permit is never left unused while a task waits, so taking it at once skips no waiter.
            if state.free > 0 {
                state.free -= 1;
                state.last = self.number;
                return Permit(Some(self.permits.clone()));
            }
            let (waiter, waiting) = oneshot::channel();
            state.lanes[self.number].push_back(waiter);
            waiting
        };
        // Waiters stay in their lane until they are served, and every one that waits keeps the permits alive.
        waiting.await.unwrap_or(Permit(None))
    }

    /// Counts the tasks that wait in this lane.
    pub fn waiting(&self) -> usize {
        self.permits.state().lanes[self.number].iter().filter(|waiter| !waiter.is_closed()).count()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(permits) = self.0.take() {
            permits.give_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::Pin,
        task::{Context, Poll, Waker},
    };

    use proptest::prelude::*;

    use super::*;

    const RUNS: usize = 4;

    type Waiting = Pin<Box<dyn Future<Output = Permit>>>;

    #[derive(Clone, Debug)]
    enum Step {
        Ask {
            run: usize,
        },
        /// An agent has finished.
        GiveBack {
            nth: usize,
        },
        /// A waiting task is cancelled; it may have been served without knowing it yet.
        Leave {
            nth: usize,
        },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0..RUNS).prop_map(|run| Step::Ask { run }),
            3 => any::<usize>().prop_map(|nth| Step::GiveBack { nth }),
            1 => any::<usize>().prop_map(|nth| Step::Leave { nth }),
        ];
        proptest::collection::vec(step, 0..120)
    }

    /// All tasks that want a permit, in order of arrival, and all that have one.
    struct Desk {
        permits: Permits,
        lanes: Vec<Arc<Lane>>,
        queue: Vec<(usize, Waiting)>,
        held: Vec<(usize, Permit)>,
        /// The run that was served last.
        last: Option<usize>,
    }

    impl Desk {
        fn new(at_once: usize, runs: usize) -> Desk {
            let permits = Permits::new(NonZeroUsize::new(at_once).unwrap());
            let lanes = (0..runs).map(|_| Arc::new(permits.lane())).collect();
            Desk { permits, lanes, queue: Vec::new(), held: Vec::new(), last: None }
        }

        fn ask(&mut self, run: usize) {
            let waited = !self.queue.is_empty();
            if self.come(run) {
                assert!(!waited, "run {run} was served past those who wait");
                self.last = Some(run);
            }
        }

        /// Returns whether the permit was granted immediately.
        fn come(&mut self, run: usize) -> bool {
            let lane = self.lanes[run].clone();
            let mut waiting: Waiting = Box::pin(async move { lane.permit().await });
            let served = poll(&mut waiting);
            let at_once = served.is_some();
            match served {
                Some(permit) => self.held.push((run, permit)),
                None => self.queue.push((run, waiting)),
            }
            at_once
        }

        fn give_back(&mut self, nth: usize) {
            if !self.held.is_empty() {
                drop(self.held.swap_remove(nth % self.held.len()));
            }
        }

        fn leave(&mut self, nth: usize) {
            if !self.queue.is_empty() {
                drop(self.queue.remove(nth % self.queue.len()));
            }
        }

        /// Delivers permits to waiting tasks. At most one was served if this is called after every step.
        fn notice(&mut self) {
            let waited: Vec<usize> = self.queue.iter().map(|(run, _)| *run).collect();
            let served: Vec<usize> = (0..self.queue.len())
                .rev()
                .filter_map(|at| {
                    let permit = poll(&mut self.queue[at].1)?;
                    let (run, _) = self.queue.remove(at);
                    self.held.push((run, permit));
                    Some(at)
                })
                .collect();
            assert!(served.len() <= 1, "one came back, and {} were served", served.len());
            let Some(at) = served.first() else { return };
            let run = waited[*at];
            let first = waited.iter().position(|other| *other == run);
            assert_eq!(first, Some(*at), "somebody of the same run waited longer");
            let others = waited.iter().any(|other| *other != run);
            assert!(!others || self.last != Some(run), "run {run} was served twice while another waited");
            self.last = Some(run);
        }
    }

    fn poll(waiting: &mut Waiting) -> Option<Permit> {
        match waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => Some(permit),
            Poll::Pending => None,
        }
    }

    proptest! {
        #[test]
        fn runs_are_served_in_turn_and_nobody_waits_while_a_permit_is_free(
            at_once in 1_usize..4,
            steps in steps(),
        ) {
            let mut desk = Desk::new(at_once, RUNS);
            for step in steps {
                match step {
                    Step::Ask { run } => desk.ask(run),
                    Step::GiveBack { nth } => desk.give_back(nth),
                    Step::Leave { nth } => desk.leave(nth),
                }
                desk.notice();
                let free = desk.permits.state().free;
                prop_assert_eq!(free + desk.held.len(), at_once);
                prop_assert!(free == 0 || desk.queue.is_empty());
                let waiting: usize = desk.lanes.iter().map(|lane| lane.waiting()).sum();
                prop_assert_eq!(waiting, desk.queue.len());
            }
            // One permit returns and one task is served, until none waits.
            for _ in 0..desk.queue.len() {
                let waited = desk.queue.len();
                desk.give_back(0);
                desk.notice();
                prop_assert_eq!(desk.queue.len(), waited - 1);
            }
        }

        #[test]
        fn no_permit_is_lost_with_those_who_leave_before_they_know_that_they_were_served(
            at_once in 1_usize..4,
            steps in steps(),
        ) {
            let mut desk = Desk::new(at_once, RUNS);
            for step in steps {
                match step {
                    Step::Ask { run } => {
                        desk.come(run);
                    }
                    Step::GiveBack { nth } => desk.give_back(nth),
                    Step::Leave { nth } => desk.leave(nth),
                }
            }
            desk.queue.clear();
            desk.held.clear();
            prop_assert_eq!(desk.permits.state().free, at_once);
        }
    }

    #[test]
    fn a_run_with_one_task_is_served_right_after_the_one_with_many() {
        let mut desk = Desk::new(1, 2);
        for run in [0, 0, 0, 0, 1] {
            desk.ask(run);
        }
        let mut order = vec![0];
        while !desk.queue.is_empty() {
            desk.give_back(0);
            desk.notice();
            order.extend(desk.last);
        }
        assert_eq!(order, [0, 1, 0, 0, 0]);
    }

    #[test]
    fn one_who_left_does_not_cost_its_run_the_turn() {
        let mut desk = Desk::new(1, 2);
        for run in [0, 0, 1, 1] {
            desk.ask(run);
        }
        // The first task of run 1.
        desk.leave(1);
        desk.give_back(0);
        desk.notice();
        assert_eq!(desk.last, Some(1));
    }
}
