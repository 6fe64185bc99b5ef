//! Caches of package managers: what they download and unpack. None of these directories is on anyone's PATH.

use std::path::PathBuf;

use tribunal_agents::driver::UserDirs;

const CARGO_CACHES: [&str; 5] = ["registry", "git", ".package-cache", ".package-cache-mutate", ".global-cache"];
const CACHE_DIRS: [&str; 10] =
    ["pip", "uv", "pypoetry", "yarn", "pnpm", "go-build", "node-gyp", "composer", "deno", "ms-playwright"];
const HOME_CACHES: [&str; 11] = [
    ".npm/_cacache",
    ".npm/_logs",
    ".local/share/pnpm/store",
    ".bun/install/cache",
    "go/pkg/mod",
    "go/pkg/sumdb",
    ".gradle/caches",
    ".m2/repository",
    ".nuget/packages",
    ".ivy2/cache",
    ".yarn/berry/cache",
];

/// Lists the caches that exist.
pub(super) fn list_caches(user_dirs: &UserDirs) -> impl Iterator<Item = PathBuf> {
    let below = |base_dir: &Option<PathBuf>, names: &[&str]| -> Vec<PathBuf> {
        base_dir.iter().flat_map(|base_dir| names.iter().map(|name| base_dir.join(name))).collect()
    };
    let caches = [
        below(&user_dirs.cargo, &CARGO_CACHES),
        below(&user_dirs.cache, &CACHE_DIRS),
        below(&user_dirs.home, &HOME_CACHES),
    ];
    // A link could lead anywhere.
    caches.into_iter().flatten().filter(|path| path.symlink_metadata().is_ok_and(|metadata| !metadata.is_symlink()))
}
