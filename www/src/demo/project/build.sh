# Builds index.html from posts/*.md. Run it with:  sh build.sh
{
  cat <<'HEAD'
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tide pool</title>
<link rel="stylesheet" href="style.css">
<header><h1>Tide pool</h1><p>Notes from the shore</p></header>
<main>
HEAD
  for post in posts/*.md; do
    title=$(head -n 1 "$post" | sed 's/^# //')
    name=$(sh slug.sh "$title")
    echo "<article id=\"$name\">"
    echo "<h2>$title</h2>" | sed 's/ & / \&amp; /'
    echo "<p>$(tail -n +3 "$post")</p>"
    echo "<a href=\"#$name\">/$name</a>"
    echo "</article>"
  done
  echo '</main>'
  echo '<script src="app.js"></script>'
  echo '</html>'
} > index.html
echo "index.html: $(grep -c '<article' index.html) posts"
