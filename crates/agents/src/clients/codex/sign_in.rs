//! Reads what `codex login status` prints: text, on standard error.

use crate::clients::client_status::{SignInOutput, SignInStatus};

/// Parses the sign-in status.
pub(super) fn parse_sign_in(status_output: SignInOutput<'_>) -> SignInStatus {
    // Warnings may come first, so every line is tried.
    let mut output_lines = status_output.stderr.lines().chain(status_output.stdout.lines()).map(str::trim);
    output_lines
        .find_map(|output_line| {
            let lowercase_line = output_line.to_lowercase();
            if lowercase_line.starts_with("not logged in") {
                Some(SignInStatus::SignedOut)
            } else if lowercase_line.starts_with("logged in using chatgpt") {
                Some(SignInStatus::SignedIn { method: "ChatGPT".to_string(), is_subscription: true })
            } else if lowercase_line.starts_with("logged in") || lowercase_line.starts_with("api key configured") {
                // What follows may be a part of the key.
                let method = output_line.split(" - ").next().unwrap_or(output_line).to_string();
                Some(SignInStatus::SignedIn { method, is_subscription: false })
            } else {
                None
            }
        })
        .unwrap_or(SignInStatus::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sign_in_status_is_read_from_the_printed_text_without_the_key() {
        let parse_stderr = |stderr| parse_sign_in(SignInOutput { stdout: "", stderr });
        assert_eq!(parse_stderr("WARNING: proceeding, even though\nNot logged in\n"), SignInStatus::SignedOut);
        let SignInStatus::SignedIn { method, is_subscription } =
            parse_stderr("Logged in using an API key - sk-test***1234")
        else {
            panic!()
        };
        assert_eq!((method.as_str(), is_subscription), ("Logged in using an API key", false));
        let SignInStatus::SignedIn { method, .. } =
            parse_stderr("API key configured - ***\nAuthentication is checked later.")
        else {
            panic!()
        };
        assert_eq!(method, "API key configured");
        assert!(matches!(
            parse_stderr("Logged in using ChatGPT"),
            SignInStatus::SignedIn { is_subscription: true, .. }
        ));
        assert_eq!(parse_stderr("Segmentation fault"), SignInStatus::Unknown);
    }
}
