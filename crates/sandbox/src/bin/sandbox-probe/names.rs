//! Attempts on names that must stay as they are, or must not come into being.

use std::ffi::CString;
use std::io::{self, Write};
use std::path::Path;

use crate::attempts::{HERE, call, open, text, write};
use crate::files::{link, rename, symlink};

/// Tries every way on every name that the test wrote down, in the current directory. `how` is
/// `missing` or `existing`.
pub(crate) fn try_all(stage: &Path, how: &str) -> io::Result<()> {
    let names = std::fs::read_to_string(stage.join("names"))?;
    let mut out = io::stdout();
    for name in names.lines() {
        for (way, attempt) in WAYS {
            if way.starts_with("old-") == (how == "existing") {
                let said = attempt(name).map_or_else(|err| err.to_string(), |()| "done".to_owned());
                writeln!(out, "{name}\t{way}\t{said}")?;
            }
        }
    }
    Ok(())
}

type Way = fn(&str) -> io::Result<()>;

const MAKE: i32 = libc::O_CREAT | libc::O_WRONLY;

/// Each puts back what it managed to change, so that the next one finds the same.
const WAYS: &[(&str, Way)] = &[
    ("create-file", |name| {
        write(open(&text(name), MAKE)?)?;
        remove(name)
    }),
    ("create-exclusively", |name| {
        open(&text(name), MAKE | libc::O_EXCL)?;
        remove(name)
    }),
    ("create-absolute", |name| {
        open(&text(std::env::current_dir()?.join(name)), MAKE)?;
        remove(name)
    }),
    ("create-in-capitals", |name| {
        // On a file system that does not tell them apart it would be the same name.
        open(&text(name.to_uppercase()), MAKE)?;
        remove(&name.to_uppercase())
    }),
    ("create-through-link", |name| {
        symlink(&text(name), &text("way"))?;
        let opened = open(&text("way"), MAKE);
        remove("way")?;
        opened?;
        remove(name)
    }),
    ("create-by-detour", |name| {
        open(&text(format!("sub/../{name}")), MAKE)?;
        remove(name)
    }),
    ("create-below-proc", |name| {
        open(&text(format!("/proc/self/cwd/{name}")), MAKE)?;
        remove(name)
    }),
    ("create-directory", |name| {
        call(libc::SYS_mkdirat, &[HERE, text(name).as_ptr() as usize, 0o755])?;
        remove_dir(name)
    }),
    ("create-directory-with-slash", |name| {
        let path = text(format!("{name}/"));
        call(libc::SYS_mkdirat, &[HERE, path.as_ptr() as usize, 0o755])?;
        remove_dir(name)
    }),
    ("create-fifo", |name| {
        let mode = (libc::S_IFIFO | 0o644) as usize;
        call(libc::SYS_mknodat, &[HERE, text(name).as_ptr() as usize, mode, 0])?;
        remove(name)
    }),
    ("rename-file-onto", |name| {
        rename(&own_file("own")?, &text(name))?;
        remove(name)
    }),
    ("rename-directory-onto", |name| {
        rename(&own_dir("own-dir")?, &text(name))?;
        remove_dir(name)
    }),
    ("exchange", |name| {
        // Only with something that is there, so it is made by the same forbidden name.
        rename(&own_file("own")?, &text(name))?;
        let (own, name_text) = (own_file("own")?, text(name));
        let (own, it) = (own.as_ptr() as usize, name_text.as_ptr() as usize);
        call(libc::SYS_renameat2, &[HERE, own, HERE, it, 2])?;
        remove(name)
    }),
    ("link-onto", |name| {
        link(&own_file("own")?, &text(name))?;
        remove(name)
    }),
    ("link-nameless-onto", |name| {
        let fd = open(&text("."), libc::O_TMPFILE | libc::O_RDWR)?;
        let (old, new) = (text(format!("/proc/self/fd/{fd}")), text(name));
        let (old, new) = (old.as_ptr() as usize, new.as_ptr() as usize);
        let follow = libc::AT_SYMLINK_FOLLOW as usize;
        call(libc::SYS_linkat, &[HERE, old, HERE, new, follow])?;
        remove(name)
    }),
    ("symlink-onto", |name| {
        symlink(c"sub", &text(name))?;
        remove(name)
    }),
    ("write-in", |name| {
        call(libc::SYS_mkdirat, &[HERE, text(name).as_ptr() as usize, 0o755])?;
        open(&text(format!("{name}/hook")), MAKE)?;
        std::fs::remove_dir_all(name)
    }),
    ("replace-parent", replace_parent),
    ("old-write", |name| {
        let path =
            if Path::new(name).is_dir() { format!("{name}/config") } else { name.to_owned() };
        write(open(&text(path), libc::O_WRONLY | libc::O_APPEND)?)
    }),
    ("old-create-in", |name| open(&text(format!("{name}/hook")), MAKE).map(drop)),
    ("old-rename-onto", |name| {
        let own = if Path::new(name).is_dir() { own_dir("own-dir")? } else { own_file("own")? };
        rename(&own, &text(name))
    }),
    ("old-rename-away", |name| {
        rename(&text(name), &text("away"))?;
        rename(&text("away"), &text(name))
    }),
    ("old-exchange", |name| {
        let (own, name) = (own_file("own")?, text(name));
        let (own, name) = (own.as_ptr() as usize, name.as_ptr() as usize);
        call(libc::SYS_renameat2, &[HERE, own, HERE, name, 2])?;
        call(libc::SYS_renameat2, &[HERE, own, HERE, name, 2]).map(drop)
    }),
    ("old-link-out", |name| {
        let path =
            if Path::new(name).is_dir() { format!("{name}/config") } else { name.to_owned() };
        link(&text(path), &text("linked"))?;
        remove("linked")
    }),
    ("old-chmod", |name| {
        call(libc::SYS_fchmodat, &[HERE, text(name).as_ptr() as usize, 0o755]).map(drop)
    }),
    ("old-unlink", |name| {
        // A full directory cannot be removed anyway; a file in it can.
        match Path::new(name).is_dir() {
            true => remove(&format!("{name}/HEAD")),
            false => remove(name),
        }
    }),
    ("old-replace-parent", replace_parent),
];

/// Puts another directory in the place of ours, with the name in it.
fn replace_parent(name: &str) -> io::Result<()> {
    let here = std::env::current_dir()?;
    let (old, aside) = (text(&here), text(here.with_extension("aside")));
    rename(&old, &aside)?;
    std::fs::create_dir(&here)?;
    std::fs::write(here.join(name), "intruder")?;
    std::fs::remove_dir_all(&here)?;
    rename(&aside, &old)
}

fn own_file(name: &str) -> io::Result<CString> {
    open(&text(name), MAKE)?;
    Ok(text(name))
}

fn own_dir(name: &str) -> io::Result<CString> {
    std::fs::create_dir_all(name)?;
    Ok(text(name))
}

fn remove(name: &str) -> io::Result<()> {
    call(libc::SYS_unlinkat, &[HERE, text(name).as_ptr() as usize, 0]).map(drop)
}

fn remove_dir(name: &str) -> io::Result<()> {
    let flags = libc::AT_REMOVEDIR as usize;
    call(libc::SYS_unlinkat, &[HERE, text(name).as_ptr() as usize, flags]).map(drop)
}
