//! Merging of claims: a table of pairs that a human has judged, and properties that hold for all answers.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use tribunal_core::{
    brief::Raised,
    files::Hunk,
    finding::{Deferral, Dismissal, Evidence, Finding, Place, Raiser, Severity, Status},
    ground::{Ground, change::Touched},
    ids::{AgentName, FindingId},
    level::Role,
    merge::{Merged, merge},
    stamp::Stamp,
};

fn raiser(round: u32, role: Role) -> Raiser {
    Raiser { round, role, agent: AgentName::new("x") }
}

fn claim(quote: &str, description: &str) -> Raised {
    Raised {
        severity: Severity::Medium,
        category: "x".into(),
        description: description.into(),
        evidence: Evidence::Quote { text: quote.into() },
        file: None,
        line: None,
        suggested_fix: String::new(),
    }
}

fn absence(heading: &str, terms: &[&str], description: &str) -> Raised {
    let terms = terms.iter().map(ToString::to_string).collect();
    Raised { evidence: Evidence::Absence { heading: heading.into(), terms }, ..claim("", description) }
}

/// Merges the answers that two roles give on the same text.
fn merged(text: &str, first: Vec<Raised>, second: Vec<Raised>) -> Vec<Finding> {
    let ground = Ground::new("a.md", text, None).unwrap();
    let mut findings = vec![];
    let answers = vec![(raiser(1, Role::Party), first), (raiser(1, Role::Adversarial), second)];
    merge(&mut findings, answers, &ground.clone().into(), Stamp::default());
    findings
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Are {
    One,
    Maybe,
    Two,
}
use Are::{Maybe, One, Two};

fn verdict(text: &str, one: Raised, other: Raised) -> Are {
    let findings = merged(text, vec![one], vec![other]);
    match findings.as_slice() {
        [_] => One,
        [_, second] if second.maybe_same_as.is_some() => Maybe,
        _ => Two,
    }
}

/// The line under review, the claims of two reviewers about it, and the verdict of a human on whether they are the same.
const PAIRS: &[(&str, &str, &str, Are)] = &[
    // Claims about a product requirements document.
    (
        FAST,
        "“Quickly” is not measurable; no response time target is given",
        "The performance requirement is vague: no concrete response time is stated",
        One,
    ),
    (
        FAST,
        "“Quickly” is not measurable; no response time target is given",
        "“Should” leaves it open whether this is mandatory; use “must”",
        Two,
    ),
    (
        FAST,
        "“Quickly” is not measurable; no response time target is given",
        "It is unclear which users are meant: admins, guests or API clients",
        Two,
    ),
    (
        KEPT,
        "No retention period is defined for user data",
        "The retention period for user data is not specified",
        One,
    ),
    (
        KEPT,
        "No retention period is defined for user data",
        "It does not say how long personal data is kept, which violates the GDPR's storage limitation",
        One,
    ),
    (KEPT, "No retention period is defined for user data", "User data is not encrypted at rest", Two),
    (
        MD5,
        "MD5 is broken and must not be used for password hashing",
        "Password hashing uses MD5, which is insecure; use Argon2 or bcrypt",
        One,
    ),
    (
        MD5,
        "MD5 is broken and must not be used for password hashing",
        "No salt is mentioned for stored passwords",
        Two,
    ),
    (
        EXPORT,
        "The 5 second limit does not say for how many rows",
        "XML export has no schema and no list of fields",
        Two,
    ),
    (
        EXPORT,
        "The 5 second limit does not say for how many rows",
        "5 seconds for an export are meaningless without a data volume (number of rows)",
        One,
    ),
    (
        EXPORT,
        "XML export has no schema and no list of fields",
        "The XML format lacks a schema definition",
        One,
    ),
    (
        EXPORT,
        "The encoding of the CSV file is not specified",
        "XML export has no schema and no list of fields",
        Two,
    ),
    (
        DELETE,
        "Deleting accounts has no confirmation and no undo",
        "There is no confirmation step before an account is deleted",
        One,
    ),
    (
        DELETE,
        "Deleting accounts has no confirmation and no undo",
        "Deleting an account is not written to the audit log",
        Two,
    ),
    (DELETE, "Account deletion is not audited", "Deleting an account is not written to the audit log", One),
    (
        DELETE,
        "Account deletion is not audited",
        "It is not said whether admins can delete other admins or themselves",
        Two,
    ),
    (
        DELETE,
        "What happens to the data of a deleted account is not described",
        "Deleting accounts has no confirmation and no undo",
        Two,
    ),
    (
        UPTIME,
        "99.9 % uptime contradicts a weekly maintenance window of four hours",
        "Weekly maintenance of 4 hours cannot be reconciled with 99.9% uptime",
        One,
    ),
    (
        UPTIME,
        "99.9 % uptime contradicts a weekly maintenance window of four hours",
        "The time zone of the weekly maintenance window is missing",
        Two,
    ),
    (
        UPTIME,
        "99.9% uptime is not achievable",
        "99.9 % uptime contradicts a weekly maintenance window of four hours",
        Maybe,
    ),
    (
        LOGIN,
        "No account lockout or rate limiting against brute force",
        "Login has no protection against brute-force attacks, e.g. rate limiting",
        One,
    ),
    (
        LOGIN,
        "No account lockout or rate limiting against brute force",
        "No password reset flow is described",
        Two,
    ),
    (LOGIN, "No password reset flow is described", "No minimum password strength is required", Two),
    (LOGIN, "No password reset flow is described", "How users reset a forgotten password is missing", One),
    (LOGIN, "Security is not considered", "Two-factor authentication is missing", Maybe),
    (
        RETRY,
        "Unlimited retries: there is no maximum number of attempts or backoff",
        "Retries never stop; a retry limit and backoff are needed",
        One,
    ),
    (
        RETRY,
        "Unlimited retries: there is no maximum number of attempts or backoff",
        "Retrying a payment is not idempotent, customers may be charged twice",
        Two,
    ),
    (
        RETRY,
        "Retrying a payment is not idempotent, customers may be charged twice",
        "Without an idempotency key a retried payment can charge the customer twice",
        One,
    ),
    (FRIENDLY, "The requirement is ambiguous", "The requirement is vague and not testable", Maybe),
    (
        FRIENDLY,
        "The acceptance criterion has no negative test case",
        "The acceptance criterion is not testable: “friendly” is subjective",
        Two,
    ),
    // Claims about an architecture.
    (KAFKA, "No schema or versioning of events", "No authentication between services is described", Two),
    (
        KAFKA,
        "Service-to-service authentication is missing",
        "No authentication between services is described",
        One,
    ),
    (KAFKA, "No schema or versioning of events", "Event schema and versioning are undefined", One),
    (
        KAFKA,
        "Delivery guarantees (at least once, exactly once) of the events are not stated",
        "No schema or versioning of events",
        Two,
    ),
    (
        SESSION,
        "It is unclear whether 30 minutes is idle time or absolute",
        "Not specified whether session expiry is idle-based or absolute",
        One,
    ),
    (
        SESSION,
        "It is unclear whether 30 minutes is idle time or absolute",
        "30 minutes contradicts the 15 minutes in section Security",
        Two,
    ),
    (
        SESSION,
        "30 minutes contradicts the 15 minutes in section Security",
        "The session timeout conflicts with the Security section, which says 15 minutes",
        One,
    ),
    // Claims about code.
    (
        UNWRAP,
        "unwrap() panics when the user does not exist",
        "Panics if no user is found because of unwrap on the result",
        One,
    ),
    (
        UNWRAP,
        "unwrap() panics when the user does not exist",
        "The lookup does not check that the caller may see this user",
        Two,
    ),
    (
        LOOP,
        "N+1 queries: fetch_price is called once per item",
        "fetch_price runs in a loop, one query per item; batch them",
        One,
    ),
    (LOOP, "N+1 queries: fetch_price is called once per item", "total may overflow; use checked_add", Two),
    (
        LOOP,
        "total can overflow for large orders",
        "Integer overflow of total is possible with many items",
        One,
    ),
    (
        SQL,
        "SQL injection through name",
        "User input is concatenated into the SQL query, which allows injection",
        One,
    ),
    (
        SQL,
        "SQL injection through name",
        "SELECT * fetches columns that are not needed, including password_hash",
        Two,
    ),
    (
        NULL,
        "Off by one: > should be >=, this is one retry too many",
        "MAX_RETRIES is exceeded by one since > is used instead of >=",
        One,
    ),
    (
        NULL,
        "Off by one: > should be >=, this is one retry too many",
        "Returning null hides the failure from the caller; throw an error",
        Two,
    ),
    (
        NULL,
        "Returning null hides the failure from the caller; throw an error",
        "The error is swallowed: callers get null and cannot tell what failed",
        One,
    ),
    (
        WRITE,
        "The write is not atomic: a crash leaves a truncated file",
        "A crash during the write leaves a half-written file; write to a temporary file and rename it",
        One,
    ),
    (
        WRITE,
        "The write is not atomic: a crash leaves a truncated file",
        "path is not checked to stay inside the project; path traversal is possible",
        Two,
    ),
    (
        WRITE,
        "The error has no context: the user does not learn which path failed",
        "The write is not atomic: a crash leaves a truncated file",
        Two,
    ),
    // These pairs were added after the rule was written, to test it on pairs it was not tuned for.
    (
        NIGHTLY,
        "What happens if the nightly job fails is not described",
        "No error handling or alerting for a failed report run",
        One,
    ),
    (
        NIGHTLY,
        "What happens if the nightly job fails is not described",
        "The time zone of “nightly” is not given",
        Two,
    ),
    (
        OFFLINE,
        "Conflict resolution after an offline edit is not described",
        "How are concurrent edits merged once the device is online again?",
        One,
    ),
    (
        OFFLINE,
        "Conflict resolution after an offline edit is not described",
        "It is not said how much data is available offline",
        Two,
    ),
    (
        CACHE,
        "The cache is never evicted and grows without bound",
        "Unbounded memory growth: entries are never removed from the cache",
        One,
    ),
    (
        CACHE,
        "The cache is never evicted and grows without bound",
        "Not thread-safe: concurrent writes to the cache race",
        Two,
    ),
    (PASS, "Swallows all exceptions silently", "Errors are ignored; at least log them", One),
    (PASS, "Swallows all exceptions silently", "Catching Exception is too broad; catch IOError", Two),
    (UPLOAD, "No virus scan of uploaded files", "Uploaded files are not scanned for malware", One),
    (
        UPLOAD,
        "No virus scan of uploaded files",
        "2 GB uploads need resumable transfer; a dropped connection starts over",
        Two,
    ),
];

const NIGHTLY: &str = "Reports are generated nightly.";
const OFFLINE: &str = "The app works offline.";
const CACHE: &str = "cache[key] = value";
const PASS: &str = "except Exception: pass";
const UPLOAD: &str = "Files up to 2 GB can be uploaded.";
const FAST: &str = "The system should respond quickly to user requests.";
const KEPT: &str = "All user data is stored for as long as needed.";
const MD5: &str = "Passwords are hashed with MD5 before they are stored.";
const EXPORT: &str = "The export must support CSV, JSON and XML within 5 seconds.";
const DELETE: &str = "Admins can delete any account.";
const UPTIME: &str = "The service has an uptime of 99.9% and is maintained every Sunday from 2 to 6.";
const LOGIN: &str = "Users log in with e-mail and password.";
const RETRY: &str = "Payments are retried until they succeed.";
const FRIENDLY: &str = "The page is friendly.";
const KAFKA: &str = "Services communicate over REST; events are published to Kafka.";
const SESSION: &str = "Sessions expire after 30 minutes.";
const UNWRAP: &str = "let user = db.find(id).unwrap();";
const LOOP: &str = "for item in items { total += fetch_price(item.id); }";
const SQL: &str = "query = \"SELECT * FROM users WHERE name = '\" + name + \"'\"";
const NULL: &str = "if (retries > MAX_RETRIES) return null;";
const WRITE: &str = "std::fs::write(path, data)?;";

/// The pairs that the rule judges differently from a human, with its verdict. Words alone do not show that "how long it is
/// kept" means "retention". A superfluous hint or a duplicate finding is acceptable, a lost finding is not.
const MISSES: &[(&str, &str, Are)] = &[
    (
        "No retention period is defined for user data",
        "It does not say how long personal data is kept, which violates the GDPR's storage limitation",
        Maybe,
    ),
    (
        "99.9 % uptime contradicts a weekly maintenance window of four hours",
        "The time zone of the weekly maintenance window is missing",
        Maybe,
    ),
    (
        "99.9% uptime is not achievable",
        "99.9 % uptime contradicts a weekly maintenance window of four hours",
        Two,
    ),
    ("Security is not considered", "Two-factor authentication is missing", Two),
    (
        "What happens if the nightly job fails is not described",
        "No error handling or alerting for a failed report run",
        Maybe,
    ),
    (
        "Conflict resolution after an offline edit is not described",
        "How are concurrent edits merged once the device is online again?",
        Two,
    ),
    ("Swallows all exceptions silently", "Errors are ignored; at least log them", Two),
];

#[test]
fn pairs_are_judged_as_a_person_judges_them_but_for_these_misses() {
    let mut misses = vec![];
    for (text, one, other, expected) in PAIRS {
        let found = verdict(text, claim(text, one), claim(text, other));
        // The order of the two claims must not matter.
        assert_eq!(verdict(text, claim(text, other), claim(text, one)), found, "{one} / {other}");
        if found != *expected {
            misses.push((*one, *other, found));
        }
    }
    assert!(PAIRS.len() >= 40);
    assert_eq!(misses, MISSES);
}

#[test]
fn no_miss_loses_a_finding() {
    for (one, other, found) in MISSES {
        let expected = PAIRS.iter().find(|pair| pair.1 == *one && pair.2 == *other).unwrap().3;
        assert!(!(expected != One && *found == One), "{one} / {other}");
    }
}

const INVOICES: &str = "\
# Plan

## Billing

Invoices are sent monthly. They are in English.
It is done by mail.

## Other

Invoices are sent monthly.
";

#[test]
fn the_further_apart_the_evidence_the_more_must_be_shared() {
    let (one, other) =
        ("No retry when an invoice cannot be sent", "No retry is planned when the invoice is not sent");
    let loose = "A retry policy with backoff is missing for mails";
    let (whole, second) = ("Invoices are sent monthly. They are in English.", "They are in English.");
    assert_eq!(verdict(INVOICES, claim(whole, one), claim("are sent monthly. They are in", loose)), One);
    assert_eq!(verdict(INVOICES, claim("Invoices are sent monthly.", one), claim(second, other)), One);
    assert_eq!(verdict(INVOICES, claim("Invoices are sent monthly.", one), claim(second, loose)), Maybe);
    assert_eq!(verdict(INVOICES, claim(whole, one), claim("It is done by mail.", other)), One);
    let far = Raised { line: Some(10), ..claim("Invoices are sent monthly.", one) };
    assert_eq!(verdict(INVOICES, claim(whole, one), far), Two, "another section is another place");
}

#[test]
fn absences_are_one_when_they_miss_the_same_thing() {
    let dunning = |terms: &[&str], text: &str| absence("Billing", terms, text);
    let one = "What happens when a customer does not pay (dunning) is not described";
    assert_eq!(
        verdict(
            INVOICES,
            dunning(&["dunning"], one),
            dunning(&["reminders", "dunning"], "No dunning process for customers who do not pay")
        ),
        One
    );
    assert_eq!(
        verdict(INVOICES, dunning(&["dunning"], one), dunning(&["tax"], "VAT and tax rates are missing")),
        Two
    );
    let quote = claim("It is done by mail.", "The dunning process for customers who do not pay is missing");
    assert_eq!(
        verdict(INVOICES, dunning(&["dunning"], "No dunning process for customers who do not pay"), quote),
        One
    );
}

#[test]
fn the_first_member_stays_and_the_highest_severity_counts() {
    let pair = PAIRS[0];
    let low = Raised { severity: Severity::Low, ..claim(pair.0, pair.1) };
    let high = Raised { severity: Severity::High, ..claim(pair.0, pair.2) };
    let findings = merged(pair.0, vec![low], vec![high]);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].severity, Severity::High);
    let roles: Vec<Role> = findings[0].raisers.iter().map(|raiser| raiser.role).collect();
    let mut sorted = roles.clone();
    sorted.sort();
    assert_eq!((roles.len(), &roles), (2, &sorted));
}

#[test]
fn claims_of_one_answer_are_never_one() {
    let (text, one, other, _) = PAIRS[0];
    let findings = merged(text, vec![claim(text, one), claim(text, other)], vec![]);
    assert_eq!(findings.len(), 2);
    assert_eq!(findings[1].maybe_same_as, None, "its reviewer told them apart");
}

/// Merges the second claim of the first pair into a finding that has this status. Returns the number of findings and the hint
/// of the last one.
fn again(status: Status, category: &str) -> (usize, Option<FindingId>) {
    let (text, one, other, _) = PAIRS[0];
    let mut findings = merged(text, vec![claim(text, one)], vec![]);
    findings[0].status = status;
    let ground = Ground::new("a.md", text, None).unwrap();
    let next = Raised { category: category.into(), ..claim(text, other) };
    merge(
        &mut findings,
        vec![(raiser(2, Role::Adversarial), vec![next])],
        &ground.clone().into(),
        Stamp::default(),
    );
    (findings.len(), findings.last().unwrap().maybe_same_as)
}

#[test]
fn what_is_fixed_or_settled_by_a_person_is_not_quietly_joined() {
    let first = Some(FindingId(1));
    assert_eq!(again(Status::Open, "y"), (1, None));
    assert_eq!(again(Status::Fixed, "x"), (2, first));
    assert_eq!(again(Status::Dismissed { why: Dismissal::Person }, "y"), (2, first));
    assert_eq!(again(Status::Dismissed { why: Dismissal::Person }, "x"), (1, None));
    assert_eq!(again(Status::Dismissed { why: Dismissal::Invalid }, "y"), (1, None));
}

#[test]
fn what_stands_away_from_a_change_is_deferred_as_pre_existing() {
    let text = "a1\na2\na3\na4\na5\na6\nold flaw\n";
    let touched = vec![Touched { file: "a.rs".into(), lines: vec![(1, 2)], ..Touched::default() }];
    let ground = Ground::new("a.rs", text, None).unwrap().of_change(touched);
    let mut findings = vec![];
    let answers = vec![(raiser(1, Role::Spec), vec![claim("a4", "near"), claim("old flaw", "away")])];
    merge(&mut findings, answers, &ground.clone().into(), Stamp::default());
    assert_eq!(findings[0].status, Status::Open);
    assert_eq!(findings[1].status, Status::Deferred { why: Deferral::PreExisting });
    assert_eq!(findings[1].last_note(), "it stands away from the changed lines");
}

/// Up to eight claims about the lines of [`JUDGED_PAIRS`]. Some quotes are invented, and many descriptions resemble each
/// other.
fn claims() -> impl Strategy<Value = Vec<Raised>> {
    let one = (0..PAIRS.len(), any::<bool>(), 0_u8..8, prop::sample::select(Severity::ALL.to_vec()));
    let claim = one.prop_map(|(index, first, way, severity)| {
        let pair = PAIRS[index];
        let quote = match way {
            0 => "what nobody ever wrote".to_string(),
            1 => pair.0.replace(' ', "\n"),
            _ => pair.0.to_string(),
        };
        Raised { severity, ..claim(&quote, if first { pair.1 } else { pair.2 }) }
    });
    prop::collection::vec(claim, 0..9)
}

const ROLES: [Role; 3] = [Role::Party, Role::Adversarial, Role::Elicitation];

fn text() -> String {
    let mut lines: Vec<&str> = PAIRS.iter().map(|pair| pair.0).collect();
    lines.dedup();
    lines.join("\n\n\n\n\n")
}

fn answers(round: u32, order: &[usize], claims: &[Vec<Raised>]) -> Vec<(Raiser, Vec<Raised>)> {
    order.iter().map(|seat| (raiser(round, ROLES[*seat]), claims[*seat].clone())).collect()
}

proptest! {
    #[test]
    fn the_order_in_which_answers_come_changes_nothing(
        claims in prop::collection::vec(claims(), 3),
        order in Just(vec![0_usize, 1, 2]).prop_shuffle(),
    ) {
        let text = text();
        let ground = Ground::new("a.md", &text, None).unwrap();
        let (mut straight, mut shuffled) = (vec![], vec![]);
        let one = merge(&mut straight, answers(1, &[0, 1, 2], &claims), &ground.clone().into(), Stamp::default());
        let other = merge(&mut shuffled, answers(1, &order, &claims), &ground.clone().into(), Stamp::default());
        prop_assert_eq!(&straight, &shuffled);
        prop_assert_eq!(one, other);
    }

    #[test]
    fn no_claim_is_lost(claims in prop::collection::vec(claims(), 3)) {
        let text = text();
        let ground = Ground::new("a.md", &text, None).unwrap();
        let mut findings = vec![];
        merge(&mut findings, answers(1, &[0, 1, 2], &claims), &ground.clone().into(), Stamp::default());
        let mut raised: BTreeMap<Role, usize> = BTreeMap::new();
        for finding in &findings {
            let mut raisers = finding.raisers.clone();
            raisers.sort();
            raisers.dedup();
            prop_assert_eq!(raisers.len(), finding.raisers.len(), "nobody raises one finding twice");
            for raiser in &finding.raisers {
                *raised.entry(raiser.role).or_default() += 1;
            }
        }
        for (role, claims) in ROLES.iter().zip(&claims) {
            prop_assert_eq!(raised.get(role).copied().unwrap_or_default(), claims.len());
        }
    }

    #[test]
    fn the_same_answers_again_join_everything_and_ids_stay(
        claims in prop::collection::vec(claims(), 3),
        more in prop::collection::vec(claims(), 3),
    ) {
        let text = text();
        let ground = Ground::new("a.md", &text, None).unwrap();
        let mut findings = vec![];
        merge(&mut findings, answers(1, &[0, 1, 2], &claims), &ground.clone().into(), Stamp::default());
        let before = findings.clone();
        let done = merge(&mut findings, answers(2, &[2, 0, 1], &claims), &ground.clone().into(), Stamp::default());
        prop_assert!(done.iter().all(|one| matches!(one, Merged::Joined { .. })), "{:?}", done);
        merge(&mut findings, answers(3, &[0, 1, 2], &more), &ground.clone().into(), Stamp::default());
        for (number, (old, new)) in (1..).zip(before.iter().zip(&findings)) {
            prop_assert_eq!((new.id, &new.description, &new.place), (FindingId(number), &old.description, &old.place));
            prop_assert!(new.raisers.starts_with(&old.raisers) && new.severity <= old.severity);
        }
    }

    #[test]
    fn a_place_goes_through_a_patch_and_back(
        cuts in prop::collection::vec((1_u32..9, 0_u32..6, 0_u32..6), 0..5),
        line in 1_u32..90,
        extra in 0_u32..4,
    ) {
        // Builds hunks with at least one line between them, and the patch that reverts them.
        let (mut hunks, mut back, mut at, mut grown) = (vec![], vec![], 0_u32, 0_i64);
        for (gap, old_len, new_len) in cuts {
            let old_start = at + gap;
            hunks.push(Hunk { old_start, old_len, new_len });
            let start = u32::try_from(i64::from(old_start) + grown).unwrap();
            back.push(Hunk { old_start: start, old_len: new_len, new_len: old_len });
            grown += i64::from(new_len) - i64::from(old_len);
            at = old_start + old_len;
        }
        let place = Place { file: "a.md".into(), line, end_line: line + extra, section: String::new() };
        let mut moved = place.clone();
        moved.shift(&hunks);
        prop_assert!(moved.line <= moved.end_line);
        moved.shift(&back);
        let kept = |line: u32| hunks.iter().all(|hunk| {
            let gone = hunk.old_start + hunk.new_len.min(hunk.old_len)..hunk.old_start + hunk.old_len;
            !gone.contains(&line)
        });
        if kept(place.line) && kept(place.end_line) {
            prop_assert_eq!(moved, place);
        }
    }
}
