namespace stageline {}
