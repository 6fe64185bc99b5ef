//! What an edit must keep: every line but those it names, byte by byte.

pub(crate) fn only_these_lines(before: &str, after: &str, lines: &[usize]) {
    let (old, new): (Vec<&str>, Vec<&str>) = (cut(before), cut(after));
    assert_eq!(old.len(), new.len(), "an edit added or removed a line");
    for (at, (old, new)) in old.iter().zip(&new).enumerate() {
        assert!(old == new || lines.contains(&(at + 1)), "line {}: {old:?} became {new:?}", at + 1);
    }
}

/// YAML ends a line at a lone carriage return, too, and counts it.
fn cut(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['\n', '\r']) {
        let end = if rest[at..].starts_with("\r\n") { at + 2 } else { at + 1 };
        lines.push(&rest[..end]);
        rest = &rest[end..];
    }
    lines.push(rest);
    lines
}
