//! The vocabulary of the court's documents and agents. `{}` stands for the thing or the heading in question.
//!
//! The wording matters, because findings are joined by their meaning. Every flaw has four wordings, as different reviewers would
//! choose them.

use crate::dice::Dice;

/// A line with a defect, and its four wordings as a finding.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlawTemplate {
    pub line: &'static str,
    pub wordings: [&'static str; 4],
}

const fn flaw_template(line: &'static str, wordings: [&'static str; 4]) -> FlawTemplate {
    FlawTemplate { line, wordings }
}

/// Something that may be missing under a heading: its names, and the line that supplies it.
#[derive(Clone, Copy, Debug)]
pub(super) struct GapTemplate {
    pub terms: [&'static str; 2],
    pub supplied: &'static str,
}

const fn gap_template(terms: [&'static str; 2], supplied: &'static str) -> GapTemplate {
    GapTemplate { terms, supplied }
}

pub(super) const HEADINGS: &[&str] = &["Goals", "People", "Functions", "Records", "Operations", "Interfaces", "Launch"];

pub(super) const THINGS: &[&str] = &[
    "invoice export",
    "search index",
    "password reset",
    "order import",
    "billing service",
    "mobile client",
    "audit trail",
    "report builder",
    "image upload",
    "webhook sender",
    "currency table",
    "price list",
    "coupon engine",
    "mail queue",
    "nightly job",
    "admin console",
    "address book",
    "stock ledger",
    "tax module",
    "refund desk",
    "chat widget",
    "map view",
    "session store",
    "event bus",
    "payment gateway",
    "catalog feed",
    "shipping label",
    "loyalty account",
    "partner portal",
    "newsletter form",
    "calendar sync",
    "barcode scanner",
    "delivery slot",
    "gift card",
    "survey page",
    "ticket inbox",
    "fraud filter",
    "data warehouse",
];

pub(super) const FLAWS: &[FlawTemplate] = &[
    flaw_template(
        "The {} answers quickly even when many people use it.",
        [
            "No response time is given for the {}: quickly cannot be measured",
            "The {} has no latency target, so no one can test how quickly it answers",
            "\"Quickly\" is vague; a response time in milliseconds is needed for the {}",
            "Performance of the {} is not measurable: what response time counts as quick?",
        ],
    ),
    flaw_template(
        "The {} keeps personal data for as long as it is useful.",
        [
            "No retention period is defined for personal data in the {}",
            "The {} retains personal data without a date of deletion",
            "How long the {} keeps personal data is not stated, which breaks the law on data protection",
            "Retention of personal data in the {} is open-ended",
        ],
    ),
    flaw_template(
        "Failed calls of the {} are tried again until they succeed.",
        [
            "Retries of the {} have no upper bound and no pause",
            "The {} retries failed calls forever; a maximum number of attempts is missing",
            "Unlimited retries by the {} will overload whatever has failed",
            "No limit and no backoff for retries in the {}",
        ],
    ),
    flaw_template(
        "Anybody with a link can open the {}.",
        [
            "The {} is open to everybody who has the link: there is no authorization",
            "No permission check protects the {} beyond a link",
            "Links to the {} leak, and access is then unrestricted",
            "Access control is missing for the {}: a forwarded link opens it",
        ],
    ),
    flaw_template(
        "Passwords for the {} are stored so that support can read them.",
        [
            "Storing readable passwords for the {} is insecure; they must be hashed",
            "Support staff can read the passwords of the {}",
            "Passwords of the {} are kept in plaintext",
            "Plaintext passwords in the {}: hash and salt them",
        ],
    ),
    flaw_template(
        "The {} accepts files of any size and type.",
        [
            "No maximum file size for the {}",
            "The {} takes uploads without a size limit or a type check",
            "Unbounded file size lets anybody fill the disk through the {}",
            "File types and sizes are not validated by the {}",
        ],
    ),
    flaw_template(
        "Amounts in the {} are rounded as the browser sees fit.",
        [
            "Rounding of amounts in the {} depends on the browser",
            "The {} does not define a rounding rule for amounts",
            "Amounts differ between browsers because the {} leaves rounding to them",
            "A rounding mode for money is missing in the {}",
        ],
    ),
    flaw_template(
        "Two people may edit the {} at once, and the last one wins.",
        [
            "Lost updates: concurrent edits of the {} overwrite each other",
            "The {} has no conflict detection when two people edit at once",
            "Parallel edits in the {} silently lose changes",
            "Last write wins loses edits in the {}; optimistic locking is needed",
        ],
    ),
    flaw_template(
        "The {} is available practically all the time.",
        [
            "No availability figure for the {}: practically is vague",
            "An uptime target for the {} is missing",
            "Availability of the {} cannot be verified without a percentage",
            "\"Practically all the time\" is no availability target for the {}",
        ],
    ),
    flaw_template(
        "Errors in the {} are shown to people as they come.",
        [
            "Raw errors of the {} reveal internals to people",
            "The {} shows stack traces and internal errors to users",
            "Error messages of the {} are not designed; internals leak",
            "Internal details leak through error messages of the {}",
        ],
    ),
    flaw_template(
        "Dates in the {} are entered and shown in the usual format.",
        [
            "The date format of the {} is not defined",
            "The usual date format is ambiguous across countries for the {}",
            "Day and month can be mixed up: the {} names no date format",
            "The {} should use ISO dates; the usual format means nothing",
        ],
    ),
    flaw_template(
        "The {} sends a message to all customers whenever something changes.",
        [
            "Messages of the {} to all customers on every change will be seen as spam",
            "The {} floods customers with a message for every change",
            "Notifying all customers of every change in the {} is too much",
            "Message frequency of the {} is unbounded: every change reaches all customers",
        ],
    ),
    flaw_template(
        "Old versions of the interface to the {} are switched off when a new one is out.",
        [
            "Clients break when old interface versions of the {} are switched off at once",
            "No deprecation period for the interface of the {}",
            "The {} gives clients no time to move to a new interface version",
            "Interface versions of the {} need a deprecation period before they are switched off",
        ],
    ),
    flaw_template(
        "Numbers for the {} are given out in order, one after the other.",
        [
            "Sequential numbers let anybody guess other records of the {}",
            "Guessable numbers in the {}: one can enumerate all records",
            "The {} is open to enumeration because its numbers are in order",
            "Numbers of the {} are predictable; use random identifiers",
        ],
    ),
    flaw_template(
        "The {} trusts whatever the partner system reports.",
        [
            "Input from the partner system is not validated by the {}",
            "The {} takes partner data without validation",
            "No checks on what the partner system reports to the {}",
            "Unvalidated partner reports reach the {}",
        ],
    ),
    flaw_template(
        "When its disk is full, the {} drops the oldest entries.",
        [
            "Silent data loss: the {} drops entries when the disk is full",
            "Dropping the oldest entries of the {} loses data and nobody is told",
            "A full disk makes the {} lose entries without an alert",
            "The {} needs an alert before the disk is full instead of dropping entries",
        ],
    ),
    flaw_template(
        "The {} is translated into the most important languages.",
        [
            "Which languages the {} supports is not listed",
            "Most important languages is vague: list those of the {}",
            "The list of languages for the {} is missing",
            "No language is named for the {}",
        ],
    ),
    flaw_template(
        "A request to the {} may take part of its effect and then stop.",
        [
            "Requests to the {} are not atomic: half of the effect may stay",
            "The {} leaves inconsistent data when a request stops half way",
            "Atomic requests are missing in the {}; partial effects stay",
            "Transactions are needed: a request to the {} can stop with a partial effect",
        ],
    ),
    flaw_template(
        "Tests of the {} use a copy of live data.",
        [
            "Live data in tests of the {} exposes personal details",
            "The {} tests run on real customer data",
            "Copying live data into tests of the {} violates privacy",
            "Data for {} tests must be made anonymous instead of copied live",
        ],
    ),
    flaw_template(
        "The key of the {} is kept in its source code.",
        [
            "Hard-coded key in the source of the {}",
            "The {} key is in source code, where everybody with the repository sees it",
            "Secrets do not belong in source code: the {} key",
            "The key of the {} cannot be rotated since it is in the source",
        ],
    ),
];

pub(super) const GAPS: &[GapTemplate] = &[
    gap_template(
        ["rollback", "roll back"],
        "A rollback to the release before takes ten minutes and is tried out monthly.",
    ),
    gap_template(
        ["monitoring", "dashboard"],
        "Monitoring counts failures a minute and calls the person on duty at ten.",
    ),
    gap_template(
        ["accessibility", "screen reader"],
        "Accessibility follows level AA and is checked with a screen reader.",
    ),
    gap_template(["failover", "standby"], "Failover to the standby happens within one minute."),
    gap_template(["throttling", "quota"], "Throttling holds every client to a quota of ten calls a second."),
    gap_template(["archiving", "archive"], "Archiving moves closed records to cold storage after one year."),
    gap_template(["onboarding", "introduction"], "Onboarding of a new colleague takes one day with a checklist."),
    gap_template(["capacity", "headroom"], "Capacity is planned for twice the traffic of last December."),
];

/// The wordings of a gap: first the missing thing, then the heading.
pub(super) const GAP_WORDINGS: [fn(&str, &str) -> String; 4] = [
    |term, heading| format!("{heading} says nothing about {term}"),
    |term, heading| format!("No {term} is described under {heading}"),
    |term, heading| format!("{heading} misses {term}, though the release depends on it"),
    |term, heading| format!("How {term} works is left open in {heading}"),
];

/// Topics that no plan needs and that false claims demand all the same.
pub(super) const NEEDLESS_TOPICS: &[&str] =
    &["gamification", "blockchain", "carbon footprint", "holograms", "astrology", "dark theme", "poetry", "mascots"];

/// Lines without defects.
pub(super) const INNOCENT: &[&str] = &[
    "The {} is used by the sales team every morning.",
    "Changes to the {} are agreed with the product owner.",
    "The {} was built by the platform group and is looked after by it.",
    "Support answers questions about the {} on working days from nine to five.",
    "The {} has a manual of twelve pages in the shared folder.",
    "Every release of the {} is announced two days ahead.",
    "The {} shows at most fifty rows on a page.",
    "Names in the {} may have up to two hundred characters.",
    "The {} writes one line to its log for every request.",
    "A person leaves the {} with a single click on the exit sign.",
    "The {} runs in the two data centres in Bremen and Graz.",
    "Colours of the {} follow the style guide, version four.",
    "The {} is opened about three hundred times a day.",
    "Only the two owners may switch the {} off.",
    "The {} replaces the paper forms used so far.",
    "Answers of the {} are cached for sixty seconds.",
    "The {} reads its settings once, when it starts.",
    "Training for the {} takes half a day and is offered monthly.",
    "The {} counts a visit after five seconds.",
    "Figures of the {} are compared with the ledger each Friday.",
];

/// False objections to a line without defects.
pub(super) const FALSE_OBJECTIONS: &[&str] = &[
    "It is not said who owns the {}",
    "The {} has no fallback when its supplier is away",
    "Load on the {} is not estimated",
    "The {} lacks a definition of done",
    "No acceptance test covers the {}",
    "Effort for the {} is underestimated",
    "A legal review of the {} is not planned",
    "The {} will confuse new staff",
    "Running costs of the {} are missing",
    "The {} duplicates what another part already does",
    "Naming of the {} does not follow the glossary",
    "No metric shows whether the {} is a success",
];

/// Lines that occur in no document.
pub(super) const INVENTED: &[&str] = &[
    "Certification of the {} by an outside laboratory comes before its first use.",
    "Until further notice nobody but the board decides on the {} and its future.",
    "Every third call to the {} is answered by a colleague in another country.",
    "For legal reasons the {} prints its results on yellow paper.",
    "Should the {} be lost, the insurance of the tenant pays for it.",
    "The whole of the {} will be rewritten next winter in a newer language.",
];

/// Puts the thing or heading into a template.
pub(super) fn fill_template(template: &str, thing: &str) -> String {
    template.replace("{}", thing)
}

pub(super) fn pick_word(dice: &mut Dice, words: &[&'static str]) -> &'static str {
    words[dice.roll(words.len())]
}
