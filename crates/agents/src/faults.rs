//! Classifies what clients report as errors.
//!
//! Only error messages of clients come in here, never the answers of models: a finding may be about a rate limit, or
//! quote "401". What follows from a fault is decided by a table in `engine`.

use tribunal_engine::fault::FaultKind;

use crate::{driver::process_output::LocalClock, reset_times::parse_reset_ms};

/// Phrases that mean one thing regardless of the HTTP status.
const DECISIVE_PHRASES: &[(FaultKind, &[&str])] = &[
    (
        FaultKind::NoCredit,
        &[
            "credit balance is too low",
            "insufficient_quota",
            "quota exceeded",
            "exceeded your current quota",
            "check your plan and billing",
            "billing_hard_limit",
            "out of credits",
        ],
    ),
    (
        FaultKind::Overflow,
        &[
            "prompt is too long",
            "input is too long",
            "context window",
            "context_length_exceeded",
            "maximum context length",
            "request too large",
            "request_too_large",
        ],
    ),
    (
        FaultKind::NoModel,
        &[
            "issue with the selected model",
            "model_not_found",
            "model not found",
            "unknown model",
            "do not have access to the model",
            "does not exist or you do not have access",
            "model is not supported",
        ],
    ),
    (
        FaultKind::Refused,
        &["safeguards flagged", "usage policy", "content policy", "content_filter", "cyber_policy_violation"],
    ),
    (FaultKind::Curtailed, &["output token maximum", "reached maximum number of turns", "max_output_tokens"]),
    (
        FaultKind::NotSignedIn,
        &[
            "invalid api key",
            "invalid x-api-key",
            "not logged in",
            "not signed in",
            "please run /login",
            "failed to authenticate",
            "oauth token has expired",
            "token has expired",
            "missing bearer",
            "incorrect api key",
            "please log in",
            "sign in again",
            "could not be refreshed",
        ],
    ),
];

/// Phrases that count only if no status says more.
const VAGUE_PHRASES: &[(FaultKind, &[&str])] = &[
    (
        FaultKind::Limited { until_ms: None },
        &[
            "usage limit",
            "rate limit",
            "rate_limit",
            "too many requests",
            "hit your",
            "limit reached",
            "limiting requests",
        ],
    ),
    (
        FaultKind::Overloaded,
        &[
            "overloaded",
            "high demand",
            "at capacity",
            "internal server error",
            "server error",
            "server_error",
            "service unavailable",
            "bad gateway",
            "gateway timeout",
        ],
    ),
    (FaultKind::NotSignedIn, &["unauthorized", "authentication", "permission_error"]),
    (
        FaultKind::Connection,
        &[
            "connection refused",
            "connection dropped",
            "connection reset",
            "connection error",
            "connection closed",
            "unable to connect",
            "econnrefused",
            "econnreset",
            "enotfound",
            "eai_again",
            "etimedout",
            "getaddrinfo",
            "dns error",
            "fetch failed",
            "socket hang up",
            "error sending request",
            "stream disconnected",
            "stream closed",
            "network error",
            "timed out",
            "timeout",
            "certificate",
        ],
    ),
    (FaultKind::Malformed, &["json parse error", "unexpected token"]),
];

/// Classifies an error message; `None` if nothing in it is known. `status` is the provider's HTTP status, if the
/// client reported it separately.
pub fn classify_fault(message: &str, status: Option<u16>, clock: &LocalClock) -> Option<FaultKind> {
    // Clients use the typographic apostrophe in some messages ("You’ve hit your limit") and the plain one in others.
    let lowercase_message = message.to_lowercase().replace('’', "'");
    let status = status.or_else(|| find_announced_status(&lowercase_message));
    // The order matters: "credit balance is too low" comes with status 400, which alone would be a rejected request,
    // while the vague phrases also occur in messages whose status is precise.
    let fault_kind = find_fault_in_table(&lowercase_message, DECISIVE_PHRASES)
        .or_else(|| fault_from_status(status?))
        .or_else(|| find_fault_in_table(&lowercase_message, VAGUE_PHRASES))?;
    Some(match fault_kind {
        // The original message is used here, because names of time zones are recognized by their capitals.
        FaultKind::Limited { .. } => FaultKind::Limited { until_ms: parse_reset_ms(message, clock) },
        fault_kind => fault_kind,
    })
}

fn find_fault_in_table(lowercase_message: &str, phrase_table: &[(FaultKind, &[&str])]) -> Option<FaultKind> {
    phrase_table
        .iter()
        .find(|(_, phrases)| phrases.iter().any(|phrase| lowercase_message.contains(phrase)))
        .map(|(fault_kind, _)| fault_kind.clone())
}

/// The fault that an HTTP status stands for; `None` for a status that is no error.
pub(crate) fn fault_from_status(status: u16) -> Option<FaultKind> {
    Some(match status {
        401 | 403 => FaultKind::NotSignedIn,
        402 => FaultKind::NoCredit,
        404 => FaultKind::NoModel,
        408 => FaultKind::Connection,
        413 => FaultKind::Overflow,
        429 => FaultKind::Limited { until_ms: None },
        500..=599 => FaultKind::Overloaded,
        // The catch-all for 4xx comes after the ones with a meaning of their own.
        400..=499 => FaultKind::Rejected { status },
        _ => return None,
    })
}

/// Finds a status in a phrase that announces one: `unexpected status 401`, `last status: 429`, `API Error: 500`,
/// `rejected (429)`. A bare number is never a status: it may be a line number or an amount.
fn find_announced_status(lowercase_message: &str) -> Option<u16> {
    let announcements = ["status code", "status", "api error", "http error", "error code", "http", "rejected"];
    announcements.iter().flat_map(|announcement| lowercase_message.match_indices(announcement)).find_map(
        |(position, announcement)| {
            let remaining_text = lowercase_message[position + announcement.len()..].trim_start_matches([':', ' ', '(']);
            let digits = &remaining_text
                [..remaining_text.find(|character: char| !character.is_ascii_digit()).unwrap_or(remaining_text.len())];
            digits.parse().ok().filter(|status| (400..600).contains(status))
        },
    )
}
