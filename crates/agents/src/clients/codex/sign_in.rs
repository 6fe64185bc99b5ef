//! Reads what `codex login status` prints: text, on standard error.

use crate::clients::status::{SignIn, StatusOutput};

/// Parses the sign-in status.
pub(super) fn read(said: StatusOutput<'_>) -> SignIn {
    // Warnings may come first, so that every line is tried.
    let mut lines = said.stderr.lines().chain(said.stdout.lines()).map(str::trim);
    lines
        .find_map(|line| {
            let folded = line.to_lowercase();
            if folded.starts_with("not logged in") {
                Some(SignIn::Out)
            } else if folded.starts_with("logged in using chatgpt") {
                Some(SignIn::In { how: "ChatGPT".to_string(), subscription: true })
            } else if folded.starts_with("logged in") || folded.starts_with("api key configured") {
                // What follows may be a part of the key.
                let how = line.split(" - ").next().unwrap_or(line).to_string();
                Some(SignIn::In { how, subscription: false })
            } else {
                None
            }
        })
        .unwrap_or(SignIn::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codex_says_it_in_words_and_shows_no_key() {
        let read = |stderr| read(StatusOutput { stdout: "", stderr });
        assert_eq!(read("WARNING: proceeding, even though\nNot logged in\n"), SignIn::Out);
        let SignIn::In { how, subscription } = read("Logged in using an API key - sk-test***1234") else {
            panic!()
        };
        assert_eq!((how.as_str(), subscription), ("Logged in using an API key", false));
        let SignIn::In { how, .. } = read("API key configured - ***\nAuthentication is checked later.")
        else {
            panic!()
        };
        assert_eq!(how, "API key configured");
        assert!(matches!(read("Logged in using ChatGPT"), SignIn::In { subscription: true, .. }));
        assert_eq!(read("Segmentation fault"), SignIn::Unknown);
    }
}
