//! Who was lent which share of the limits of a run.

use tribunal_engine::{
    child_outcome::{ChildOutcome, ChildReport, FailedChild},
    children::ChildLedger,
    fault::{Fault, FaultKind},
    ids::RunId,
    limits::{Cost, LimitShare, UsageTotals},
    reason::{RunOutcome, RunReason},
};

use crate::toy::{Toy, ToySummary};

fn share(cost: u64, tokens: u64) -> LimitShare {
    LimitShare { runtime_ms: 1_000, cost: Cost(cost), tokens }
}

fn ended(cost: u64, tokens: u64) -> ChildOutcome<Toy> {
    let used = UsageTotals { cost: Cost(cost), uncosted_tokens: tokens, ..UsageTotals::default() };
    ChildOutcome::Ended(ChildReport {
        run: RunId::new("a-1"),
        outcome: Some(RunOutcome::Resolved),
        reason: RunReason::GoalMet,
        detail: String::new(),
        used,
        worked_ms: 100,
        result: ToySummary {},
    })
}

#[test]
fn what_is_lent_cannot_be_lent_again_and_what_is_not_used_comes_back() {
    let mut ledger = ChildLedger::default();
    assert_eq!(ledger.lend_share("a", share(90, 30), 3), share(30, 10));
    assert_eq!(ledger.lend_share("b", share(90, 30), 2), share(30, 10));
    assert_eq!(ledger.lend_share("c", share(90, 30), 1), share(30, 10));
    assert_eq!(ledger.lend_share("d", share(90, 30), 1), share(0, 0));
    assert_eq!(ledger.settle_account("a", &ended(10, 4)).cost, Cost(10));
    // The run has used 10 of its 90, and 60 are lent: 20 are free.
    assert_eq!(ledger.lend_share("e", share(80, 26), 1), share(20, 6));
}

#[test]
fn what_a_failed_child_had_used_counts_once() {
    let fault = Fault::new(FaultKind::World, "the disk is gone");
    let used = UsageTotals { cost: Cost(20), ..UsageTotals::default() };
    let failed: ChildOutcome<Toy> =
        ChildOutcome::Failed(FailedChild { run: Some(RunId::new("a-1")), fault: fault.clone(), used });
    let mut ledger = ChildLedger::default();
    assert_eq!(ledger.settle_account("a", &failed).cost, Cost(20));
    assert_eq!(ledger.settle_account("a", &failed).cost, Cost(0));
    // A child that could not even be looked at has used nothing new.
    assert_eq!(ledger.settle_account("a", &ChildOutcome::<Toy>::from(fault)).cost, Cost(0));
    assert_eq!(ledger.settle_account("a", &ended(50, 0)).cost, Cost(30));
}

#[test]
fn a_child_that_is_continued_gets_a_share_beyond_what_it_used() {
    let mut ledger = ChildLedger::default();
    ledger.lend_share("a", share(90, 30), 1);
    assert_eq!(ledger.settle_account("a", &ended(50, 7)).cost, Cost(50));
    let continued = ledger.lend_share("a", share(40, 23), 1);
    assert_eq!((continued.cost, continued.tokens, continued.runtime_ms), (Cost(90), 30, 1_100));
    assert_eq!(ledger.settle_account("a", &ended(65, 7)).cost, Cost(15));
}

#[test]
fn a_child_that_waits_at_its_limit_gets_what_the_limit_was_raised_by() {
    let mut ledger = ChildLedger::default();
    ledger.lend_share("a", share(50, 30), 1);
    ledger.settle_account("a", &ended(50, 7));
    ledger.note_reached("a", RunReason::Cost, share(50, 30));
    // Another limit, the same one, or a lower one does not help.
    for limit in [share(50, 90), share(50, 30), share(20, 30)] {
        assert!(!ledger.raise_limit("a", limit), "{limit:?}");
    }
    assert!(ledger.raise_limit("a", share(80, 10)));
    assert!(!ledger.raise_limit("a", share(80, 10)), "once is enough");
    let extension = ledger.take_extension("a").unwrap();
    assert_eq!((extension.cost, extension.tokens), (Cost(30), 23));
    assert_eq!(ledger.take_extension("a"), None);
    assert_eq!(ledger.lend_share("a", extension, 1).cost, Cost(80));
    // A session has used more than the limit: what the limit was raised by is used already.
    ledger.settle_account("a", &ended(95, 7));
    ledger.note_reached("a", RunReason::Cost, share(80, 30));
    for limit in [share(90, 30), share(95, 30)] {
        assert!(!ledger.raise_limit("a", limit), "{limit:?}");
        assert_eq!(ledger.take_extension("a"), None, "{limit:?}");
    }
    assert!(ledger.raise_limit("a", share(100, 30)));
    let extension = ledger.take_extension("a").unwrap();
    assert_eq!(extension.cost, Cost(5));
    assert_eq!(ledger.lend_share("a", extension, 1).cost, Cost(100));
    // Failures are no amount that could be raised.
    ledger.note_reached("a", RunReason::Failures, share(80, 30));
    assert!(!ledger.raise_limit("a", share(800, 300)));
    assert!(!ledger.raise_limit("b", share(800, 300)));
}
