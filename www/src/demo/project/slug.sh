# Turns a title into the name of its page:  sh slug.sh "Hello World"  ->  hello-world
printf '%s' "$1" | tr 'A-Z' 'a-z' | tr -c 'a-z0-9' '-' | sed 's/-$//'
echo
