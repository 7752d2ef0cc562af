#!/bin/bash
cat > slugify.sh <<'END'
#!/usr/bin/env bash
# Prints a slug for each title on standard input.
export LC_ALL=C
awk '
  {
    slug = tolower($0)
    gsub(/&/, " and ", slug)
    gsub(/\047/, "", slug)
    gsub(/[^a-z0-9]+/, "-", slug)
    gsub(/^-|-$/, "", slug)
    if (length(slug) > 30) {
      next_char = substr(slug, 31, 1)
      slug = substr(slug, 1, 30)
      if (next_char != "-" && slug ~ /-/) sub(/-[^-]*$/, "", slug)
      sub(/-$/, "", slug)
    }
    if (slug == "") slug = "untitled"
    unique = slug
    for (n = 2; unique in taken; n++) unique = slug "-" n
    taken[unique] = 1
    print unique
  }
'
END
