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
pub(crate) struct AgentPermits(Arc<Mutex<PermitState>>);

#[derive(Debug)]
struct PermitState {
    /// The number of free permits; while it is not zero, no task waits.
    free_count: usize,
    /// The lanes in the order in which they were opened. A closed lane is empty and stays, since there are only as many as runs.
    lanes: Vec<VecDeque<oneshot::Sender<AgentPermit>>>,
    /// The lane that was served last.
    last_lane: usize,
}

/// The queue in which one run's tasks wait.
#[derive(Debug)]
pub(crate) struct PermitLane {
    permits: AgentPermits,
    lane_index: usize,
}

/// Allows one agent to work. A permit is returned when it is dropped.
#[derive(Debug)]
pub(crate) struct AgentPermit(Option<AgentPermits>);

impl AgentPermits {
    pub fn new(max_agents: NonZeroUsize) -> AgentPermits {
        AgentPermits(Arc::new(Mutex::new(PermitState {
            free_count: max_agents.get(),
            lanes: Vec::new(),
            last_lane: 0,
        })))
    }

    pub fn open_lane(&self) -> PermitLane {
        let mut state = self.lock_state();
        state.lanes.push(VecDeque::new());
        PermitLane { lane_index: state.lanes.len() - 1, permits: self.clone() }
    }

    fn lock_state(&self) -> MutexGuard<'_, PermitState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn return_permit(self) {
        let mut state = self.lock_state();
        while let Some((lane_index, waiter)) = state.next_waiter() {
            match waiter.send(AgentPermit(Some(self.clone()))) {
                Ok(()) => {
                    state.last_lane = lane_index;
                    return;
                }
                // The task that waited is gone, which does not count as its lane's turn. The permit is emptied, since dropping it
                // as it is would return it twice.
                Err(mut unwanted) => drop(unwanted.0.take()),
            }
        }
        state.free_count += 1;
    }
}

impl PermitState {
    /// Returns the first waiter of the next lane that has one; the lane that was served last comes last.
    fn next_waiter(&mut self) -> Option<(usize, oneshot::Sender<AgentPermit>)> {
        let lane_count = self.lanes.len();
        (1..=lane_count)
            .map(|step| (self.last_lane + step) % lane_count)
            .find_map(|lane_index| self.lanes[lane_index].pop_front().map(|waiter| (lane_index, waiter)))
    }
}

impl PermitLane {
    /// Waits for a permit. A task that is dropped meanwhile is skipped when its turn comes.
    pub async fn acquire_permit(&self) -> AgentPermit {
        let receiver = {
            let mut state = self.permits.lock_state();
            // A free permit is never left unused while a task waits, so taking it at once skips no waiter.
            if state.free_count > 0 {
                state.free_count -= 1;
                state.last_lane = self.lane_index;
                return AgentPermit(Some(self.permits.clone()));
            }
            let (sender, receiver) = oneshot::channel();
            state.lanes[self.lane_index].push_back(sender);
            receiver
        };
        // Waiters stay in their lane until they are served, and every one that waits keeps the permits alive.
        receiver.await.unwrap_or(AgentPermit(None))
    }

    /// Counts the tasks that wait in this lane.
    pub fn count_waiting(&self) -> usize {
        self.permits.lock_state().lanes[self.lane_index].iter().filter(|waiter| !waiter.is_closed()).count()
    }
}

impl Drop for AgentPermit {
    fn drop(&mut self) {
        if let Some(permits) = self.0.take() {
            permits.return_permit();
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

    type PermitFuture = Pin<Box<dyn Future<Output = AgentPermit>>>;

    #[derive(Clone, Debug)]
    enum PermitStep {
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

    fn random_steps() -> impl Strategy<Value = Vec<PermitStep>> {
        let step = prop_oneof![
            4 => (0..RUNS).prop_map(|run| PermitStep::Ask { run }),
            3 => any::<usize>().prop_map(|nth| PermitStep::GiveBack { nth }),
            1 => any::<usize>().prop_map(|nth| PermitStep::Leave { nth }),
        ];
        proptest::collection::vec(step, 0..120)
    }

    /// All tasks that want a permit, in order of arrival, and all that have one.
    struct PermitModel {
        permits: AgentPermits,
        lanes: Vec<Arc<PermitLane>>,
        waiting_queue: Vec<(usize, PermitFuture)>,
        held_permits: Vec<(usize, AgentPermit)>,
        /// The run that was served last.
        last_served: Option<usize>,
    }

    impl PermitModel {
        fn new(at_once: usize, runs: usize) -> PermitModel {
            let permits = AgentPermits::new(NonZeroUsize::new(at_once).unwrap());
            let lanes = (0..runs).map(|_| Arc::new(permits.open_lane())).collect();
            PermitModel { permits, lanes, waiting_queue: Vec::new(), held_permits: Vec::new(), last_served: None }
        }

        fn ask_for_permit(&mut self, run_index: usize) {
            let others_waited = !self.waiting_queue.is_empty();
            if self.join_queue(run_index) {
                assert!(!others_waited, "run {run_index} was served past those who wait");
                self.last_served = Some(run_index);
            }
        }

        /// Returns whether the permit was granted immediately.
        fn join_queue(&mut self, run_index: usize) -> bool {
            let lane = self.lanes[run_index].clone();
            let mut waiting: PermitFuture = Box::pin(async move { lane.acquire_permit().await });
            let served = poll_permit(&mut waiting);
            let at_once = served.is_some();
            match served {
                Some(permit) => self.held_permits.push((run_index, permit)),
                None => self.waiting_queue.push((run_index, waiting)),
            }
            at_once
        }

        fn return_permit(&mut self, nth: usize) {
            if !self.held_permits.is_empty() {
                drop(self.held_permits.swap_remove(nth % self.held_permits.len()));
            }
        }

        fn leave_queue(&mut self, nth: usize) {
            if !self.waiting_queue.is_empty() {
                drop(self.waiting_queue.remove(nth % self.waiting_queue.len()));
            }
        }

        /// Delivers permits to waiting tasks. At most one was served if this is called after every step.
        fn deliver_permits(&mut self) {
            let waiting_runs: Vec<usize> = self.waiting_queue.iter().map(|(run_index, _)| *run_index).collect();
            let served: Vec<usize> = (0..self.waiting_queue.len())
                .rev()
                .filter_map(|position| {
                    let permit = poll_permit(&mut self.waiting_queue[position].1)?;
                    let (run_index, _) = self.waiting_queue.remove(position);
                    self.held_permits.push((run_index, permit));
                    Some(position)
                })
                .collect();
            assert!(served.len() <= 1, "one came back, and {} were served", served.len());
            let Some(position) = served.first() else { return };
            let run_index = waiting_runs[*position];
            let first = waiting_runs.iter().position(|waiting_run| *waiting_run == run_index);
            assert_eq!(first, Some(*position), "another task of the same run waited longer");
            let other_runs_waited = waiting_runs.iter().any(|waiting_run| *waiting_run != run_index);
            assert!(
                !other_runs_waited || self.last_served != Some(run_index),
                "run {run_index} was served twice while another waited"
            );
            self.last_served = Some(run_index);
        }
    }

    fn poll_permit(waiting: &mut PermitFuture) -> Option<AgentPermit> {
        match waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => Some(permit),
            Poll::Pending => None,
        }
    }

    proptest! {
        #[test]
        fn runs_are_served_in_turn_and_none_waits_while_a_permit_is_free(
            at_once in 1_usize..4,
            steps in random_steps(),
        ) {
            let mut desk = PermitModel::new(at_once, RUNS);
            for step in steps {
                match step {
                    PermitStep::Ask { run } => desk.ask_for_permit(run),
                    PermitStep::GiveBack { nth } => desk.return_permit(nth),
                    PermitStep::Leave { nth } => desk.leave_queue(nth),
                }
                desk.deliver_permits();
                let free = desk.permits.lock_state().free_count;
                prop_assert_eq!(free + desk.held_permits.len(), at_once);
                prop_assert!(free == 0 || desk.waiting_queue.is_empty());
                let waiting: usize = desk.lanes.iter().map(|lane| lane.count_waiting()).sum();
                prop_assert_eq!(waiting, desk.waiting_queue.len());
            }
            // One permit returns and one task is served, until none waits.
            for _ in 0..desk.waiting_queue.len() {
                let waiting_before = desk.waiting_queue.len();
                desk.return_permit(0);
                desk.deliver_permits();
                prop_assert_eq!(desk.waiting_queue.len(), waiting_before - 1);
            }
        }

        #[test]
        fn no_permit_is_lost_with_those_who_leave_before_they_know_that_they_were_served(
            at_once in 1_usize..4,
            steps in random_steps(),
        ) {
            let mut desk = PermitModel::new(at_once, RUNS);
            for step in steps {
                match step {
                    PermitStep::Ask { run } => {
                        desk.join_queue(run);
                    }
                    PermitStep::GiveBack { nth } => desk.return_permit(nth),
                    PermitStep::Leave { nth } => desk.leave_queue(nth),
                }
            }
            desk.waiting_queue.clear();
            desk.held_permits.clear();
            prop_assert_eq!(desk.permits.lock_state().free_count, at_once);
        }
    }

    #[test]
    fn a_run_with_one_task_is_served_right_after_the_one_with_many() {
        let mut model = PermitModel::new(1, 2);
        for run_index in [0, 0, 0, 0, 1] {
            model.ask_for_permit(run_index);
        }
        let mut order = vec![0];
        while !model.waiting_queue.is_empty() {
            model.return_permit(0);
            model.deliver_permits();
            order.extend(model.last_served);
        }
        assert_eq!(order, [0, 1, 0, 0, 0]);
    }

    #[test]
    fn a_cancelled_waiter_does_not_cost_its_run_the_turn() {
        let mut model = PermitModel::new(1, 2);
        for run_index in [0, 0, 1, 1] {
            model.ask_for_permit(run_index);
        }
        // The first task of run 1.
        model.leave_queue(1);
        model.return_permit(0);
        model.deliver_permits();
        assert_eq!(model.last_served, Some(1));
    }
}
