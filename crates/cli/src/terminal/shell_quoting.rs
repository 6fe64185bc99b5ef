//! How arguments are written in commands that the user copies into a shell.

/// Quotes an argument for a shell, if it needs that.
pub(crate) fn shell_quote(argument: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "/._-+=:@%".contains(character);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        argument.to_string()
    } else {
        format!("'{}'", argument.replace('\'', "'\\''"))
    }
}
