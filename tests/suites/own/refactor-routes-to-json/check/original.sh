subject=$(printf '%s' "$1" | tr '[:upper:]' '[:lower:]')

case $subject in
  "re: outage"* | *"is down"*) echo "operations 1" ;;
  invoice* | *"credit note"*) echo "billing 2" ;;
  *refund*) echo "billing 1" ;;
  *password* | *"log in"* | *login*) echo "accounts 2" ;;
  "[list-"[0-9]*"]"*) echo "newsletter 5" ;;
  *\?) echo "support 3" ;;
  *) echo "inbox 3" ;;
esac
