//! The project that `tribunal demo` unpacks, and the commands in it.

use crate::{
    settings::{FILE, items_of_text},
    trust_item::Item,
};

/// The document that the demo reviews.
pub(crate) const SUBJECT: &str = "_bmad-output/planning-artifacts/prd.md";

/// The demo's files: path and text.
pub(crate) const FILES: [(&str, &str); 5] = [
    ("README.md", include_str!("../demo/README.md")),
    ("tribunal.yaml", include_str!("../demo/tribunal.yaml")),
    ("demo/court.yaml", include_str!("../demo/demo/court.yaml")),
    ("_bmad/bmm/config.yaml", include_str!("../demo/_bmad/bmm/config.yaml")),
    (SUBJECT, include_str!("../demo/_bmad-output/planning-artifacts/prd.md")),
];

/// The commands of the bundled project. They come with Tribunal, so the user is not asked about them.
pub(crate) fn bundled_items() -> Vec<Item> {
    FILES
        .iter()
        .filter(|(name, _)| *name == FILE)
        .flat_map(|(name, text)| items_of_text(name, text))
        .collect()
}
