//! The command line of the patch tool.

use clap::Args;

/// Apply a patch in the format that coding models write, in the current directory.
///
/// The patch is applied all of it or nothing: every file is read, every place found and every new
/// content written beside the old one before the first of them changes. Nothing is written outside
/// of the current directory, also not through links, nor to .git, .codex, .agents and .tieline.
#[derive(Debug, Args)]
#[command(after_long_help = "\
The format:
  *** Begin Patch
  *** Add File: PATH            then its lines, each behind a +
  *** Delete File: PATH
  *** Update File: PATH
  *** Move to: NEWPATH          optional, right behind Update
  @@ LINE                       a line of the file before the place; bare, or left out for the first
   context                      a line that stays, behind a space
  -old                          a line that goes
  +new                          a line that comes
  *** End of File               optional: the lines above are the last of the file
  *** End Patch

Lines are found also where spaces at their ends, their indentation, or typographic dashes, quotes and
spaces differ.

Example:
  tieline apply-patch <<'EOF'
  *** Begin Patch
  *** Update File: src/greet.py
  @@ def greet():
  -    print(\"Hi\")
  +    print(\"Hello\")
  *** Add File: NOTES.md
  +# Notes
  *** End Patch
  EOF

Exit codes:
  0  applied
  1  it does not apply, or it is refused; nothing was changed (but see --partial)
  2  wrong usage, or the patch cannot be read")]
pub(crate) struct ApplyPatchArgs {
    /// The patch. `-`, or none and something piped in, reads it from stdin.
    #[arg(value_name = "PATCH | -", allow_hyphen_values = false)]
    pub(crate) patch: Option<String>,
    /// Apply one hunk after the other; those before one that fails stay applied.
    #[arg(long)]
    pub(crate) partial: bool,
    /// Write nothing: print what would change as a unified diff.
    #[arg(long, conflicts_with = "partial")]
    pub(crate) dry_run: bool,
    /// Apply nothing: end patches that were begun in this directory and whose process was killed.
    ///
    /// Those that had reached all their files are complete, all others are taken back. Applying a patch
    /// does this first.
    #[arg(long, conflicts_with_all = ["patch", "partial", "dry_run"])]
    pub(crate) recover: bool,
}
