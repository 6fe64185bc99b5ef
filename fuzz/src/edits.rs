//! What an edit must keep: every line but those it names, byte by byte.

pub(crate) fn only_these_lines(before: &str, after: &str, lines: &[usize]) {
    let (old, new): (Vec<&str>, Vec<&str>) = (cut(before), cut(after));
    assert_eq!(old.len(), new.len(), "an edit added or removed a line");
    for (at, (old, new)) in old.iter().zip(&new).enumerate() {
        assert!(old == new || lines.contains(&(at + 1)), "line {}: {old:?} became {new:?}", at + 1);
    }
}

fn cut(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}
